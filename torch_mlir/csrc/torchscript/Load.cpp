// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Load.h"

#include "LoadingCode.h"
#include "Versions.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/runtime/print_handler.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {
namespace {

using c10::IValue;
using c10::TypeKind;
using c10::TypePtr;

/// Compares an object graph with the types that its classes declare. libtorch believes pickles:
/// it sets attributes to what they hold.
class Conformance {
public:
  explicit Conformance(const Archive &archive) : archive(archive) {}

  void check(const IValue &root, const TypePtr &type) {
    add(root, type, "");
    while (!rest.empty()) {
      Item item = std::move(rest.back());
      rest.pop_back();
      look(item);
    }
  }

private:
  struct Item {
    IValue value;
    TypePtr type;
    std::string path;
  };

  void add(const IValue &value, const TypePtr &type, std::string path) {
    // Once for each type: what is shared may be reached often.
    if (value.isPtrType() && !seen.emplace(value.internalToPointer(), type.get()).second)
      return;
    rest.push_back({value, type, std::move(path)});
  }

  /// Whether the value itself, not what it holds, is of the type.
  static bool fits(const IValue &value, const TypePtr &type) {
    switch (type->kind()) {
    case TypeKind::AnyType:
      return true;
    case TypeKind::TensorType:
      return value.isTensor();
    case TypeKind::OptionalType:
      return value.isNone() || fits(value, type->containedType(0));
    case TypeKind::UnionType: {
      for (const TypePtr &member : type->containedTypes())
        if (fits(value, member))
          return true;
      return false;
    }
    case TypeKind::ListType:
      return value.isList();
    case TypeKind::DictType:
      return value.isGenericDict();
    case TypeKind::TupleType:
      return value.isTuple() &&
             value.toTupleRef().elements().size() == type->containedTypeSize();
    case TypeKind::FutureType:
      return value.isFuture();
    case TypeKind::ClassType:
    case TypeKind::InterfaceType:
      return value.isObject() && value.toObjectRef().type()->isSubtypeOf(*type);
    default:
      return value.type()->isSubtypeOf(*type);
    }
  }

  void look(const Item &item) {
    const IValue &value = item.value;
    TypePtr type = item.type;
    if (!fits(value, type))
      archive.fail("data.pkl", "the attribute '" + item.path + "' is declared as '" +
                                   type->annotation_str() + "', but holds a value of type '" +
                                   value.type()->annotation_str() + "'");
    while (type->kind() == TypeKind::OptionalType)
      type = type->containedType(0);
    if (type->kind() == TypeKind::UnionType) {
      for (const TypePtr &member : type->containedTypes())
        if (fits(value, member))
          return add(value, member, item.path);
      return;
    }
    // Under Any, values tell their types themselves.
    auto contained = [&](std::size_t i) -> TypePtr {
      if (type->kind() == TypeKind::AnyType)
        return c10::AnyType::get();
      return type->containedType(i);
    };
    if (value.isObject()) {
      const c10::ivalue::Object &object = value.toObjectRef();
      std::shared_ptr<c10::ClassType> own = object.type();
      if (object.slots().size() < own->numAttributes())
        archive.fail("data.pkl", "the object '" + item.path + "' has fewer attributes than its "
                                 "class");
      for (std::size_t i = 0; i < own->numAttributes(); ++i)
        add(object.slots()[i], own->getAttribute(i),
            (item.path.empty() ? "" : item.path + ".") + own->getAttributeName(i));
    } else if (value.isTuple()) {
      const auto &elements = value.toTupleRef().elements();
      for (std::size_t i = 0; i < elements.size(); ++i)
        add(elements[i], contained(i), item.path + "[" + std::to_string(i) + "]");
    } else if (value.isList()) {
      const auto elements = value.toListRef();
      TypePtr declared = contained(0);
      for (std::size_t i = 0; i < elements.size(); ++i)
        if (elements[i].isPtrType() || !fits(elements[i], declared))
          add(elements[i], declared, item.path + "[" + std::to_string(i) + "]");
    } else if (value.isGenericDict()) {
      TypePtr key = contained(0), held = contained(1);
      for (const auto &entry : value.toGenericDict()) {
        add(entry.key(), key, item.path + "'s key");
        add(entry.value(), held, item.path + "[...]");
      }
    }
  }

  const Archive &archive;
  std::vector<Item> rest;
  std::set<std::pair<const void *, const c10::Type *>> seen;
};

void dropPrinted(const std::string &) {}

/// Loads an archive with its debug records onto the CPU.
torch::jit::Module
loadModule(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> adapter) {
  torch::jit::ExtraFilesMap extraFiles;
#if TORCH_MLIR_LIBTORCH_AT_LEAST(2, 0)
  return torch::jit::load(std::move(adapter), c10::Device(c10::kCPU), extraFiles,
                          /*load_debug_files=*/true);
#else
  return torch::jit::load(std::move(adapter), c10::Device(c10::kCPU), extraFiles);
#endif
}

} // namespace

torch::jit::Module loadArchive(const std::shared_ptr<Archive> &archive) {
  torch::jit::setPrintHandler(dropPrinted);
  LoadingBudget budget(*archive);
  // libtorch drops what operators on constants throw, and changes what others do.
  auto loadAndAsk = [&]() -> torch::jit::Module {
    try {
      return loadModule(adapter(archive));
    } catch (const c10::Error &problem) {
      if (budget.isSpent())
        budget.fail(problem.what_without_backtrace());
      throw;
    } catch (const std::exception &problem) {
      if (budget.isSpent())
        budget.fail(problem.what());
      throw;
    }
  };
  torch::jit::Module module = loadAndAsk();
  if (budget.isSpent())
    budget.fail("");
  archive->checkUnchanged();
  Conformance(*archive).check(module._ivalue(), module.type());
  return module;
}

} // namespace torch_mlir::torchscript

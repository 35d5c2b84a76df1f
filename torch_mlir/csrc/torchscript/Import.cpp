// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an archive to a module.

#include "torchscript/Import.h"

#include "torchscript/Builder.h"
#include "torchscript/Functions.h"
#include "torchscript/Locations.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"

#include "mlir-c/Diagnostics.h"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <mutex>

namespace torch_mlir::torchscript {

namespace {

/// Collects what MLIR reports while it lives, which nobody else gets to see then.
class Diagnostics {
public:
  explicit Diagnostics(MlirContext context)
      : context(context),
        handler(mlirContextAttachDiagnosticHandler(context, collect, &text, nullptr)) {}
  ~Diagnostics() { mlirContextDetachDiagnosticHandler(context, handler); }
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;

  void clear() { text.clear(); }
  const std::string &getText() const { return text; }

private:
  static MlirLogicalResult collect(MlirDiagnostic diagnostic, void *userData) {
    auto &text = *static_cast<std::string *>(userData);
    if (!text.empty())
      text += "; ";
    text += toString(mlirLocationPrint, mlirDiagnosticGetLocation(diagnostic)) + ": " +
            toString(mlirDiagnosticPrint, diagnostic);
    return mlirLogicalResultSuccess();
  }

  MlirContext context;
  std::string text;
  MlirDiagnosticHandlerID handler;
};

/// A module until it is handed out.
class OwnedModule {
public:
  explicit OwnedModule(MlirLocation location) : module(mlirModuleCreateEmpty(location)) {}
  ~OwnedModule() {
    if (!mlirModuleIsNull(module))
      mlirModuleDestroy(module);
  }
  OwnedModule(const OwnedModule &) = delete;
  OwnedModule &operator=(const OwnedModule &) = delete;

  MlirModule get() const { return module; }
  MlirModule release() { return std::exchange(module, MlirModule{nullptr}); }

private:
  MlirModule module;
};

/// libtorch's registries and compilation units are the process's.
std::mutex &getMutex() {
  static auto *mutex = new std::mutex();
  return *mutex;
}

torch::jit::Module load(const std::shared_ptr<Archive> &archive) {
  torch::jit::ExtraFilesMap extraFiles;
  return torch::jit::load(adapter(archive), c10::Device(c10::kCPU), extraFiles,
                          /*load_debug_files=*/true);
}

/// The root's class, without the names around it.
std::string getModelName(const torch::jit::Module &model) {
  std::string name = getName(*model.type());
  return name.substr(name.rfind('.') + 1);
}

void importRaw(MlirContext context, MlirModule module, const torch::jit::Module &model,
               const Options &options) {
  Locations locations(context);
  Types types(context, /*valueTensors=*/false);
  Literals literals(types, options.maxCopiedBytes);
  MlirBlock body = mlirModuleGetBody(module);
  Functions functions(context, body, types, literals, locations);
  Values values(Builder(context, body), types, literals, /*objects=*/true);
  values.get(model._ivalue(), model.type(), "", locations.unknown());
  functions.importAll();
}

} // namespace

MlirModule importArchive(MlirContext context, const std::shared_ptr<Archive> &archive,
                         const std::string &name, const Options &options) {
  std::lock_guard<std::mutex> lock(getMutex());
  Diagnostics diagnostics(context);
  try {
    torch::jit::Module model = load(archive);
    OwnedModule module(mlirLocationUnknownGet(context));
    Builder builder(context, mlirModuleGetBody(module.get()));
    mlirOperationSetAttributeByName(
        mlirModuleGetOperation(module.get()),
        mlirStringRefCreateFromCString("torch.debug_module_name"),
        builder.string(getModelName(model)));
    importRaw(context, module.get(), model, options);
    diagnostics.clear();
    if (!mlirOperationVerify(mlirModuleGetOperation(module.get())))
      throw ImportError("the module that was made isn't valid: " + diagnostics.getText());
    return module.release();
  } catch (const ImportError &problem) {
    throw ImportError(name + ": " + problem.what(), problem.getLine());
  } catch (const Unsupported &problem) {
    throw ImportError(name + ": " + problem.what());
  } catch (const c10::Error &problem) {
    throw ImportError(name + ": " + problem.what_without_backtrace());
  } catch (const ArchiveError &) {
    throw;
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &problem) {
    throw ImportError(name + ": " + problem.what());
  }
}

} // namespace torch_mlir::torchscript

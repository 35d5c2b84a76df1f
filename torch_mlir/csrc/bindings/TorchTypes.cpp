// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings/TorchTypes.h"

#include "capi/TorchTypes.h"

#include "mlir-c/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"

#include <optional>
#include <string>
#include <vector>

namespace nb = nanobind;
using mlir::python::nanobind_adaptors::mlir_type_subclass;
using mlir::python::nanobind_adaptors::pure_subclass;

namespace {

/// Collects what is reported in a context while it lives.
class Diagnostics {
public:
  explicit Diagnostics(MlirContext context)
      : context(context), handler(mlirContextAttachDiagnosticHandler(context, collect, &text,
                                                                     /*deleteUserData=*/nullptr)) {}
  ~Diagnostics() { mlirContextDetachDiagnosticHandler(context, handler); }
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;

  const std::string &getText() const { return text; }

private:
  static MlirLogicalResult collect(MlirDiagnostic diagnostic, void *text) {
    mlirDiagnosticPrint(
        diagnostic,
        [](MlirStringRef part, void *text) {
          static_cast<std::string *>(text)->append(part.data, part.length);
        },
        text);
    return mlirLogicalResultSuccess();
  }

  MlirContext context;
  std::string text;
  MlirDiagnosticHandlerID handler;
};

/// The type that `make` gives. Where it gives none, what it reports becomes a ValueError.
template <typename Make>
MlirType checked(MlirContext context, Make make) {
  Diagnostics diagnostics(context);
  MlirType type = make(mlirLocationUnknownGet(context));
  if (mlirTypeIsNull(type))
    throw nb::value_error(diagnostics.getText().c_str());
  return type;
}

void bindPlainTypes(nb::module_ &module) {
  struct PlainType {
    const char *name;
    bool (*isA)(MlirType);
    MlirTypeID (*getTypeID)();
    MlirType (*get)(MlirContext);
  };
#define PLAIN_TYPE(Name)                                                                           \
  {                                                                                                \
    #Name "Type", torchMlirTypeIsATorch##Name, torchMlirTorch##Name##TypeGetTypeID,                \
        torchMlirTorch##Name##TypeGet                                                              \
  }
  static constexpr PlainType types[] = {
      PLAIN_TYPE(Any),       PLAIN_TYPE(Bool),     PLAIN_TYPE(Device),       PLAIN_TYPE(Float),
      PLAIN_TYPE(Generator), PLAIN_TYPE(Int),      PLAIN_TYPE(LinearParams), PLAIN_TYPE(None),
      PLAIN_TYPE(Number),    PLAIN_TYPE(QInt8),    PLAIN_TYPE(QInt16),       PLAIN_TYPE(QInt32),
      PLAIN_TYPE(QUInt2x4),  PLAIN_TYPE(QUInt4x2), PLAIN_TYPE(QUInt8),       PLAIN_TYPE(String)};
#undef PLAIN_TYPE
  for (const PlainType &type : types)
    mlir_type_subclass(module, type.name, type.isA, type.getTypeID)
        .def_classmethod(
            "get",
            [get = type.get](const nb::object &cls, MlirContext context) {
              return cls(get(context));
            },
            nb::arg("cls"), nb::arg("context").none() = nb::none());
}

using TensorGet = MlirType (*)(MlirLocation, intptr_t, const int64_t *, MlirType, MlirAttribute);

pure_subclass bindTensorType(nb::module_ &module, const char *name, bool (*isA)(MlirType),
                             MlirTypeID (*getTypeID)(), TensorGet get) {
  return mlir_type_subclass(module, name, isA, getTypeID)
      .def_classmethod(
          "get",
          [get](const nb::object &cls, std::optional<std::vector<int64_t>> sizes,
                std::optional<MlirType> dtype, std::optional<MlirAttribute> sparsity,
                MlirContext context) {
            return cls(checked(context, [&](MlirLocation location) {
              return get(location, sizes ? static_cast<intptr_t>(sizes->size()) : -1,
                         sizes ? sizes->data() : nullptr, dtype.value_or(MlirType{nullptr}),
                         sparsity.value_or(MlirAttribute{nullptr}));
            }));
          },
          nb::arg("cls"), nb::arg("sizes") = nb::none(), nb::arg("dtype") = nb::none(),
          nb::arg("sparsity") = nb::none(), nb::arg("context").none() = nb::none(),
          "A tensor type: sizes, -1 where one isn't known, or None; a dtype or None; an "
          "attribute for the sparse layout or None. Raises ValueError where they don't make a "
          "type.")
      .def_property_readonly(
          "sizes",
          [](MlirType self) -> std::optional<std::vector<int64_t>> {
            if (!torchMlirTorchTensorTypeHasSizes(self))
              return std::nullopt;
            std::vector<int64_t> sizes(torchMlirTorchTensorTypeGetRank(self));
            for (size_t i = 0; i < sizes.size(); ++i)
              sizes[i] = torchMlirTorchTensorTypeGetSize(self, i);
            return sizes;
          },
          "The sizes, -1 where one isn't known; None where the rank isn't.")
      .def_property_readonly(
          "dtype",
          [](MlirType self) -> std::optional<MlirType> {
            MlirType dtype = torchMlirTorchTensorTypeGetDtype(self);
            return mlirTypeIsNull(dtype) ? std::nullopt : std::optional<MlirType>(dtype);
          },
          "The dtype, None where it isn't known.")
      .def_property_readonly(
          "sparsity",
          [](MlirType self) -> std::optional<MlirAttribute> {
            MlirAttribute sparsity = torchMlirTorchTensorTypeGetSparsity(self);
            return mlirAttributeIsNull(sparsity) ? std::nullopt
                                                 : std::optional<MlirAttribute>(sparsity);
          },
          "The attribute that describes the sparse layout, None of a dense tensor.");
}

void bindTensorTypes(nb::module_ &module) {
  bindTensorType(module, "ValueTensorType", torchMlirTypeIsATorchValueTensor,
                 torchMlirTorchValueTensorTypeGetTypeID, torchMlirTorchValueTensorTypeGetChecked)
      .def_classmethod(
          "from_attribute",
          [](const nb::object &cls, MlirAttribute attribute) {
            MlirType type = torchMlirTorchValueTensorTypeGetFromAttribute(attribute);
            if (mlirTypeIsNull(type))
              throw nb::value_error("not the elements of a tensor with a dtype that PyTorch has");
            return cls(type);
          },
          nb::arg("cls"), nb::arg("attribute"),
          "The type of a torch.vtensor.literal with this attribute. Raises ValueError where it "
          "can't be one's.");
  bindTensorType(module, "NonValueTensorType", torchMlirTypeIsATorchNonValueTensor,
                 torchMlirTorchNonValueTensorTypeGetTypeID,
                 torchMlirTorchNonValueTensorTypeGetChecked);
}

void bindContainerTypes(nb::module_ &module) {
  auto bindUnary = [&](const char *name, bool (*isA)(MlirType), MlirTypeID (*getTypeID)(),
                       MlirType (*get)(MlirLocation, MlirType),
                       MlirType (*getContained)(MlirType)) {
    mlir_type_subclass(module, name, isA, getTypeID)
        .def_classmethod(
            "get",
            [get](const nb::object &cls, MlirType contained) {
              return cls(checked(mlirTypeGetContext(contained),
                                 [&](MlirLocation location) { return get(location, contained); }));
            },
            nb::arg("cls"), nb::arg("contained_type"))
        .def_property_readonly("contained_type",
                               [getContained](MlirType self) { return getContained(self); });
  };
  bindUnary("ListType", torchMlirTypeIsATorchList, torchMlirTorchListTypeGetTypeID,
            torchMlirTorchListTypeGetChecked, torchMlirTorchListTypeGetContainedType);
  bindUnary("OptionalType", torchMlirTypeIsATorchOptional, torchMlirTorchOptionalTypeGetTypeID,
            torchMlirTorchOptionalTypeGetChecked, torchMlirTorchOptionalTypeGetContainedType);

  auto bindNary = [&](const char *name, bool (*isA)(MlirType), MlirTypeID (*getTypeID)(),
                      MlirType (*get)(MlirLocation, intptr_t, MlirType const *),
                      intptr_t (*getNumTypes)(MlirType), MlirType (*getType)(MlirType, intptr_t)) {
    mlir_type_subclass(module, name, isA, getTypeID)
        .def_classmethod(
            "get",
            [get](const nb::object &cls, std::vector<MlirType> contained, MlirContext context) {
              return cls(checked(context, [&](MlirLocation location) {
                return get(location, contained.size(), contained.data());
              }));
            },
            nb::arg("cls"), nb::arg("contained_types"), nb::arg("context").none() = nb::none())
        .def_property_readonly("contained_types", [getNumTypes, getType](MlirType self) {
          std::vector<MlirType> types(getNumTypes(self));
          for (size_t i = 0; i < types.size(); ++i)
            types[i] = getType(self, i);
          return types;
        });
  };
  bindNary("TupleType", torchMlirTypeIsATorchTuple, torchMlirTorchTupleTypeGetTypeID,
           torchMlirTorchTupleTypeGetChecked, torchMlirTorchTupleTypeGetNumTypes,
           torchMlirTorchTupleTypeGetType);
  bindNary("UnionType", torchMlirTypeIsATorchUnion, torchMlirTorchUnionTypeGetTypeID,
           torchMlirTorchUnionTypeGetChecked, torchMlirTorchUnionTypeGetNumTypes,
           torchMlirTorchUnionTypeGetType);

  mlir_type_subclass(module, "DictType", torchMlirTypeIsATorchDict, torchMlirTorchDictTypeGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, MlirType key, MlirType value) {
            return cls(checked(mlirTypeGetContext(key), [&](MlirLocation location) {
              return torchMlirTorchDictTypeGetChecked(location, key, value);
            }));
          },
          nb::arg("cls"), nb::arg("key_type"), nb::arg("value_type"))
      .def_property_readonly("key_type",
                             [](MlirType self) { return torchMlirTorchDictTypeGetKeyType(self); })
      .def_property_readonly(
          "value_type", [](MlirType self) { return torchMlirTorchDictTypeGetValueType(self); });

  mlir_type_subclass(module, "NnModuleType", torchMlirTypeIsATorchNnModule,
                     torchMlirTorchNnModuleTypeGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const std::string &className, MlirContext context) {
            return cls(torchMlirTorchNnModuleTypeGet(
                context, mlirStringRefCreate(className.data(), className.size())));
          },
          nb::arg("cls"), nb::arg("class_name"), nb::arg("context").none() = nb::none())
      .def_property_readonly("class_name", [](MlirType self) {
        MlirStringRef name = torchMlirTorchNnModuleTypeGetClassName(self);
        return std::string(name.data, name.length);
      });
}

} // namespace

void torch_mlir::bindTorchTypes(nb::module_ &module) {
  module.def("is_subtype", torchMlirTorchTypeIsSubtype, nb::arg("sub"), nb::arg("super"),
             "Whether a value of type `sub` may stand where `super` is asked for.");

  // The classes derive from torch_mlir.ir.Type, but this module is imported to set up
  // torch_mlir.ir, before that has anything in it.
  module.def(
      "bind_types",
      [] {
        nb::module_ module =
            nb::module_::import_(MAKE_MLIR_PYTHON_QUALNAME("_mlir_libs._torchMlir"));
        if (nb::hasattr(module, "IntType"))
          return;
        bindPlainTypes(module);
        bindTensorTypes(module);
        bindContainerTypes(module);
      },
      "Makes the classes of the torch dialect's types and puts them into this module. "
      "torch_mlir.dialects.torch does it, once torch_mlir.ir is there.");
}

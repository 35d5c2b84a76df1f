// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of the torch dialect.

#ifndef TORCH_MLIR_C_TORCHTYPES_H
#define TORCH_MLIR_C_TORCHTYPES_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// For each type: whether a type is one, and the TypeID that all of them have.
#define TORCH_MLIR_DECLARE_TYPE(Name)                                                              \
  MLIR_CAPI_EXPORTED bool torchMlirTypeIsATorch##Name(MlirType type);                              \
  MLIR_CAPI_EXPORTED MlirTypeID torchMlirTorch##Name##TypeGetTypeID(void);

/// And, where a type has no parameters, the type itself.
#define TORCH_MLIR_DECLARE_PLAIN_TYPE(Name)                                                        \
  TORCH_MLIR_DECLARE_TYPE(Name)                                                                    \
  MLIR_CAPI_EXPORTED MlirType torchMlirTorch##Name##TypeGet(MlirContext context);

TORCH_MLIR_DECLARE_PLAIN_TYPE(Any)
TORCH_MLIR_DECLARE_PLAIN_TYPE(Bool)
TORCH_MLIR_DECLARE_PLAIN_TYPE(Device)
TORCH_MLIR_DECLARE_PLAIN_TYPE(Float)
TORCH_MLIR_DECLARE_PLAIN_TYPE(Generator)
TORCH_MLIR_DECLARE_PLAIN_TYPE(Int)
TORCH_MLIR_DECLARE_PLAIN_TYPE(LinearParams)
TORCH_MLIR_DECLARE_PLAIN_TYPE(None)
TORCH_MLIR_DECLARE_PLAIN_TYPE(Number)
TORCH_MLIR_DECLARE_PLAIN_TYPE(QInt8)
TORCH_MLIR_DECLARE_PLAIN_TYPE(QInt16)
TORCH_MLIR_DECLARE_PLAIN_TYPE(QInt32)
TORCH_MLIR_DECLARE_PLAIN_TYPE(QUInt2x4)
TORCH_MLIR_DECLARE_PLAIN_TYPE(QUInt4x2)
TORCH_MLIR_DECLARE_PLAIN_TYPE(QUInt8)
TORCH_MLIR_DECLARE_PLAIN_TYPE(String)

TORCH_MLIR_DECLARE_TYPE(Dict)
TORCH_MLIR_DECLARE_TYPE(List)
TORCH_MLIR_DECLARE_TYPE(NnModule)
TORCH_MLIR_DECLARE_TYPE(NonValueTensor)
TORCH_MLIR_DECLARE_TYPE(Optional)
TORCH_MLIR_DECLARE_TYPE(Tuple)
TORCH_MLIR_DECLARE_TYPE(Union)
TORCH_MLIR_DECLARE_TYPE(ValueTensor)

#undef TORCH_MLIR_DECLARE_PLAIN_TYPE
#undef TORCH_MLIR_DECLARE_TYPE

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A tensor type. `sizes` has `numSizes` entries, -1 where a size isn't known; with
/// `numSizes` = -1 not even the rank is. `dtype` and `sparsity` may be null. Gives a null
/// type and a diagnostic where the parameters don't make a type.
MLIR_CAPI_EXPORTED MlirType torchMlirTorchValueTensorTypeGetChecked(MlirLocation location,
                                                                    intptr_t numSizes,
                                                                    const int64_t *sizes,
                                                                    MlirType dtype,
                                                                    MlirAttribute sparsity);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchNonValueTensorTypeGetChecked(MlirLocation location,
                                                                       intptr_t numSizes,
                                                                       const int64_t *sizes,
                                                                       MlirType dtype,
                                                                       MlirAttribute sparsity);

/// The parameters of either tensor type.
MLIR_CAPI_EXPORTED bool torchMlirTorchTensorTypeHasSizes(MlirType type);
/// How many sizes there are; the type must have sizes.
MLIR_CAPI_EXPORTED intptr_t torchMlirTorchTensorTypeGetRank(MlirType type);
/// A size, -1 where it isn't known.
MLIR_CAPI_EXPORTED int64_t torchMlirTorchTensorTypeGetSize(MlirType type, intptr_t position);
/// Null where it isn't known.
MLIR_CAPI_EXPORTED MlirType torchMlirTorchTensorTypeGetDtype(MlirType type);
/// Null where there is none.
MLIR_CAPI_EXPORTED MlirAttribute torchMlirTorchTensorTypeGetSparsity(MlirType type);

/// The type of a `torch.vtensor.literal` with this attribute, null where it can't be one's.
MLIR_CAPI_EXPORTED MlirType torchMlirTorchValueTensorTypeGetFromAttribute(MlirAttribute attribute);

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

// What a container holds must be of the torch dialect. A null type and a diagnostic come
// back where it isn't.

MLIR_CAPI_EXPORTED MlirType torchMlirTorchListTypeGetChecked(MlirLocation location,
                                                             MlirType contained);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchListTypeGetContainedType(MlirType type);

MLIR_CAPI_EXPORTED MlirType torchMlirTorchOptionalTypeGetChecked(MlirLocation location,
                                                                 MlirType contained);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchOptionalTypeGetContainedType(MlirType type);

MLIR_CAPI_EXPORTED MlirType torchMlirTorchTupleTypeGetChecked(MlirLocation location,
                                                              intptr_t numContained,
                                                              MlirType const *contained);
MLIR_CAPI_EXPORTED intptr_t torchMlirTorchTupleTypeGetNumTypes(MlirType type);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchTupleTypeGetType(MlirType type, intptr_t position);

MLIR_CAPI_EXPORTED MlirType torchMlirTorchUnionTypeGetChecked(MlirLocation location,
                                                              intptr_t numContained,
                                                              MlirType const *contained);
MLIR_CAPI_EXPORTED intptr_t torchMlirTorchUnionTypeGetNumTypes(MlirType type);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchUnionTypeGetType(MlirType type, intptr_t position);

MLIR_CAPI_EXPORTED MlirType torchMlirTorchDictTypeGetChecked(MlirLocation location, MlirType key,
                                                             MlirType value);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchDictTypeGetKeyType(MlirType type);
MLIR_CAPI_EXPORTED MlirType torchMlirTorchDictTypeGetValueType(MlirType type);

/// An object's type by the name of its `torch.class_type`.
MLIR_CAPI_EXPORTED MlirType torchMlirTorchNnModuleTypeGet(MlirContext context,
                                                          MlirStringRef className);
MLIR_CAPI_EXPORTED MlirStringRef torchMlirTorchNnModuleTypeGetClassName(MlirType type);

//===----------------------------------------------------------------------===//
// Relations
//===----------------------------------------------------------------------===//

/// Whether a value of type `sub` may stand where `super` is asked for.
MLIR_CAPI_EXPORTED bool torchMlirTorchTypeIsSubtype(MlirType sub, MlirType super);

#ifdef __cplusplus
}
#endif

#endif // TORCH_MLIR_C_TORCHTYPES_H

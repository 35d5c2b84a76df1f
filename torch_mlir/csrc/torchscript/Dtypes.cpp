// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's dtypes, those included that the libtorch in here lacks.

#include "torchscript/Dtypes.h"

#include <iterator>

namespace torch_mlir::torchscript {

static constexpr Dtype dtypes[] = {
    {"Byte", "ui8", 1},
    {"Char", "si8", 1},
    {"Short", "si16", 2},
    {"Int", "si32", 4},
    {"Long", "si64", 8},
    {"Half", "f16", 2},
    {"Float", "f32", 4},
    {"Double", "f64", 8},
    {"ComplexHalf", "complex<f16>", 4},
    {"ComplexFloat", "complex<f32>", 8},
    {"ComplexDouble", "complex<f64>", 16},
    {"Bool", "i1", 1},
    {"QInt8", "!torch.qint8", 1},
    {"QUInt8", "!torch.quint8", 1},
    {"QInt32", "!torch.qint32", 4},
    {"BFloat16", "bf16", 2},
    {"QUInt4x2", "!torch.quint4x2", 1},
    {"QUInt2x4", "!torch.quint2x4", 1},
    {"Bits1x8", nullptr, 0},
    {"Bits2x4", nullptr, 0},
    {"Bits4x2", nullptr, 0},
    {"Bits8", nullptr, 0},
    {"Bits16", nullptr, 0},
    {"Float8_e5m2", "f8E5M2", 1},
    {"Float8_e4m3fn", "f8E4M3FN", 1},
    {"Float8_e5m2fnuz", "f8E5M2FNUZ", 1},
    {"Float8_e4m3fnuz", "f8E4M3FNUZ", 1},
    {"UInt16", "ui16", 2},
    {"UInt32", "ui32", 4},
    {"UInt64", "ui64", 8},
    {"UInt1", "ui1", 0},
    {"UInt2", "ui2", 0},
    {"UInt3", "ui3", 0},
    {"UInt4", "ui4", 0},
    {"UInt5", "ui5", 0},
    {"UInt6", "ui6", 0},
    {"UInt7", "ui7", 0},
    {"Int1", "si1", 0},
    {"Int2", "si2", 0},
    {"Int3", "si3", 0},
    {"Int4", "si4", 0},
    {"Int5", "si5", 0},
    {"Int6", "si6", 0},
    {"Int7", "si7", 0},
    {"Float8_e8m0fnu", "f8E8M0FNU", 1},
    {"Float4_e2m1fn_x2", "f4E2M1FN", 0},
};

const Dtype *getDtype(std::size_t number) {
  return number < std::size(dtypes) ? &dtypes[number] : nullptr;
}

int findDtype(std::string_view name) {
  for (std::size_t i = 0; i < std::size(dtypes); ++i)
    if (name == dtypes[i].name && dtypes[i].bytes)
      return static_cast<int>(i);
  return -1;
}

const char *getStandIn(std::size_t bytes) {
  switch (bytes) {
  case 1:
    return "Byte";
  case 2:
    return "Short";
  case 4:
    return "Int";
  default:
    return "Long";
  }
}

} // namespace torch_mlir::torchscript

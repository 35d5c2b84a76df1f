// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structural operators: what isn't a call of an operator with a schema, or is written
// differently from one.

#ifndef TORCH_MLIR_DIALECT_TORCHOPS_TD
#define TORCH_MLIR_DIALECT_TORCHOPS_TD

include "dialect/TorchTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CastInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Torch_Op<string mnemonic, list<Trait> traits = []> : Op<Torch_Dialect, mnemonic, traits>;

/// An operator that writes to nothing, so that its effects follow from which of its
/// operands and results are references.
class Torch_ReadingOp<string mnemonic, list<Trait> traits = []>
    : Torch_Op<mnemonic,
               !listconcat([DeclareOpInterfaceMethods<MemoryEffectsOpInterface>], traits)> {
  let extraClassDefinition = [{
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>> &effects) {
      ::torch_mlir::torch::getReadingEffects(getOperation(), effects);
    }
  }];
}

/// A conversion that changes what is known of a value, not the value.
class Torch_CastOp<string mnemonic, string joint>
    : Torch_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<CastOpInterface>]> {
  let assemblyFormat = "$operand attr-dict `:` qualified(type($operand)) `" # joint #
                       "` qualified(type($result))";
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

class Torch_ConstantOp<string mnemonic, string text>
    : Torch_Op<"constant." # mnemonic,
               [ConstantLike, Pure,
                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = text;
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

def Torch_ConstantIntOp : Torch_ConstantOp<"int", "an int"> {
  let arguments = (ins I64Attr:$value);
  let results = (outs Torch_IntType:$result);
}

def Torch_ConstantFloatOp : Torch_ConstantOp<"float", "a float"> {
  let arguments = (ins F64Attr:$value);
  let results = (outs Torch_FloatType:$result);
}

def Torch_ConstantBoolOp : Torch_ConstantOp<"bool", "a bool"> {
  let arguments = (ins I1Attr:$value);
  let results = (outs Torch_BoolType:$result);
}

def Torch_ConstantStrOp : Torch_ConstantOp<"str", "a str"> {
  let arguments = (ins StrAttr:$value);
  let results = (outs Torch_StringType:$result);
}

def Torch_ConstantDeviceOp
    : Torch_ConstantOp<"device", "a device, by the name that torch.device takes"> {
  let arguments = (ins StrAttr:$value);
  let results = (outs Torch_DeviceType:$result);
}

def Torch_ConstantNoneOp : Torch_ConstantOp<"none", "None"> {
  let results = (outs Torch_NoneType:$result);
  let assemblyFormat = "attr-dict";
}

def Torch_ConstantNumberOp : Torch_Op<"constant.number", [ConstantLike, Pure]> {
  let summary = "a number whose Python type isn't known: i64 or f64";
  let arguments = (ins AnyAttrOf<[I64Attr, F64Attr]>:$value);
  let results = (outs Torch_NumberType:$result);
  let hasFolder = 1;
}

/// The result's type follows from the operands and attributes. The verifier says what is wrong
/// with another one; the interface wouldn't say it as well.
class Torch_InferringOp<string mnemonic, list<Trait> traits = []>
    : Torch_Op<mnemonic, !listconcat([
          DeclareOpInterfaceMethods<InferTypeOpInterface, ["refineReturnTypes"]>], traits)> {
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::refineReturnTypes(
        ::mlir::MLIRContext *, ::std::optional<::mlir::Location>, ::mlir::ValueRange,
        ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &) {
      return ::mlir::success();
    }
  }];
}

def Torch_ValueTensorLiteralOp : Torch_InferringOp<"vtensor.literal", [ConstantLike, Pure]> {
  let summary = "a tensor value from an attribute";
  let description = [{
    The type follows from the attribute's: same sizes, same dtype. The contents may be
    inline (`dense<...>`) or beside the module (`dense_resource<...>`).
  }];
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs Torch_ValueTensorType:$result);
  let assemblyFormat = "`(` $value `)` attr-dict `:` qualified(type($result))";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Torch_NonValueTensorLiteralOp : Torch_InferringOp<"tensor.literal"> {
  let summary = "a new tensor in memory with an attribute's contents";
  let description = "The type may say less than the attribute does.";
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs Res<Torch_NonValueTensorType, "", [MemAlloc]>:$result);
  let assemblyFormat = "`(` $value `)` attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Types and value semantics
//===----------------------------------------------------------------------===//

def Torch_DerefineOp : Torch_CastOp<"derefine", "to"> {
  let summary = "forget what a value's type says: from a type to a supertype";
  let arguments = (ins AnyTorchType:$operand);
  let results = (outs AnyTorchType:$result);
}

def Torch_PrimUncheckedCastOp : Torch_CastOp<"prim.unchecked_cast", "->"> {
  let summary = "prim::unchecked_cast: from a type to a subtype that the program has tested for";
  let arguments = (ins AnyTorchType:$x);
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = "$x attr-dict `:` qualified(type($x)) `->` qualified(type($result))";
}

def Torch_TensorStaticInfoCastOp : Torch_CastOp<"tensor_static_info_cast", "to"> {
  let summary = "add or drop what is known of a tensor's shape and dtype";
  let arguments = (ins AnyTorchTensorType:$operand);
  let results = (outs AnyTorchTensorType:$result);
}

def Torch_CopyToNonValueTensorOp : Torch_InferringOp<"copy.to_tensor", [
    TypesMatchWith<"the operand has the result's type, as a value", "result", "operand",
                   "::torch_mlir::torch::withValueSemantics($_self)">]> {
  let summary = "a new tensor in memory with a value's contents";
  let arguments = (ins Torch_ValueTensorType:$operand);
  let results = (outs Res<Torch_NonValueTensorType, "", [MemAlloc]>:$result);
  let assemblyFormat = "$operand attr-dict `:` qualified(type($result))";
}

def Torch_CopyToValueTensorOp : Torch_InferringOp<"copy.to_vtensor", [
    TypesMatchWith<"the operand has the result's type, in memory", "result", "operand",
                   "::torch_mlir::torch::withoutValueSemantics($_self)">]> {
  let summary = "the value that a tensor in memory holds now";
  let arguments = (ins Arg<Torch_NonValueTensorType, "", [MemRead]>:$operand);
  let results = (outs Torch_ValueTensorType:$result);
  let assemblyFormat = "$operand attr-dict `:` qualified(type($result))";
}

def Torch_OverwriteTensorContentsOp : Torch_Op<"overwrite.tensor.contents", [
    TypesMatchWith<"the overwritten tensor has the value's type, in memory", "value", "overwritten",
                   "::torch_mlir::torch::withoutValueSemantics($_self)">]> {
  let summary = "write a value into a tensor in memory";
  let arguments = (ins Torch_ValueTensorType:$value,
                       Arg<Torch_NonValueTensorType, "", [MemWrite]>:$overwritten);
  let assemblyFormat = [{
    $value `overwrites` $overwritten attr-dict
    `:` qualified(type($value)) `,` qualified(type($overwritten))
  }];
}

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

def Torch_PrimListConstructOp : Torch_ReadingOp<"prim.ListConstruct"> {
  let summary = "prim::ListConstruct: a new list";
  let arguments = (ins Variadic<AnyTorchType>:$elements);
  let results = (outs Torch_ListType:$result);
  let assemblyFormat = "$elements attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Torch_PrimListUnpackOp : Torch_ReadingOp<"prim.ListUnpack"> {
  let summary = "prim::ListUnpack: the elements of a list that has as many as there are results";
  let arguments = (ins Torch_ListType:$operand);
  let results = (outs Variadic<AnyTorchType>:$results);
  let assemblyFormat = [{
    $operand attr-dict `:` qualified(type($operand)) `->` custom<Types>(type($results))
  }];
}

def Torch_PrimTupleConstructOp : Torch_Op<"prim.TupleConstruct", [Pure]> {
  let summary = "prim::TupleConstruct: a tuple";
  let arguments = (ins Variadic<AnyTorchType>:$elements);
  let results = (outs Torch_TupleType:$result);
  let assemblyFormat = [{
    $elements attr-dict `:` custom<Types>(type($elements)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Torch_PrimTupleUnpackOp : Torch_Op<"prim.TupleUnpack", [Pure]> {
  let summary = "prim::TupleUnpack: the elements of a tuple";
  let arguments = (ins Torch_TupleType:$tup);
  let results = (outs Variadic<AnyTorchType>:$results);
  let assemblyFormat = [{
    $tup attr-dict `:` qualified(type($tup)) `->` custom<Types>(type($results))
  }];
  let hasVerifier = 1;
}

def Torch_PrimDictConstructOp : Torch_ReadingOp<"prim.DictConstruct", [SameVariadicOperandSize]> {
  let summary = "prim::DictConstruct: a new dict";
  let arguments = (ins Variadic<AnyTorchType>:$keys, Variadic<AnyTorchType>:$values);
  let results = (outs Torch_DictType:$result);
  let assemblyFormat = [{
    `keys` `(` ($keys^ `:` qualified(type($keys)))? `)`
    `values` `(` ($values^ `:` qualified(type($values)))? `)`
    attr-dict `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

def Torch_PrimIfOp : Torch_Op<"prim.If", [
    RecursiveMemoryEffects, SingleBlock,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>]> {
  let summary = "prim::If";
  let description = [{
    Runs one region or the other; both are always there. What a region's
    `torch.prim.If.yield` gives has to have the results' types: `torch.derefine` makes them so.
  }];
  let arguments = (ins Torch_BoolType:$condition);
  let results = (outs Variadic<AnyTorchType>:$results);
  let regions = (region SizedRegion<1>:$thenRegion, SizedRegion<1>:$elseRegion);
  let hasCustomAssemblyFormat = 1;
}

def Torch_PrimIfYieldOp : Torch_Op<"prim.If.yield", [
    Pure, Terminator, ReturnLike, HasParent<"PrimIfOp">]> {
  let summary = "ends a region of torch.prim.If";
  let arguments = (ins Variadic<AnyTorchType>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` qualified(type($results)))?";
}

def Torch_PrimLoopOp : Torch_Op<"prim.Loop", [
    RecursiveMemoryEffects, SingleBlock,
    DeclareOpInterfaceMethods<RegionBranchOpInterface, ["getEntrySuccessorOperands"]>]> {
  let summary = "prim::Loop";
  let description = [{
    Runs the region while the condition holds, `maxTripCount` times at most. The region's
    arguments are the number of the iteration and the values carried from one to the next.
  }];
  let arguments = (ins Torch_IntType:$maxTripCount, Torch_BoolType:$initialCondition,
                       Variadic<AnyTorchType>:$iterArgsInit);
  let results = (outs Variadic<AnyTorchType>:$results);
  let regions = (region SizedRegion<1>:$region);
  let assemblyFormat = [{
    $maxTripCount `,` $initialCondition `,` `init` `(` $iterArgsInit `)` $region
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Torch_PrimLoopConditionOp : Torch_Op<"prim.Loop.condition", [
    Pure, Terminator, DeclareOpInterfaceMethods<RegionBranchTerminatorOpInterface>,
    HasParent<"PrimLoopOp">]> {
  let summary = "ends the region of torch.prim.Loop: whether to go on, and with what";
  let arguments = (ins Torch_BoolType:$shouldContinue, Variadic<AnyTorchType>:$iterArgs);
  let assemblyFormat = [{
    $shouldContinue `,` `iter` `(` ($iterArgs^ `:` qualified(type($iterArgs)))? `)` attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// TorchScript's interpreter
//===----------------------------------------------------------------------===//

def Torch_PrimLoadOp : Torch_Op<"prim.Load", [MemoryEffects<[MemRead]>]> {
  let summary = "prim::Load: the value of a local variable";
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = "$name attr-dict `:` qualified(type($result))";
}

def Torch_PrimStoreOp : Torch_Op<"prim.Store", [MemoryEffects<[MemWrite]>]> {
  let summary = "prim::Store: set a local variable";
  let arguments = (ins StrAttr:$name, AnyTorchType:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` qualified(type($value))";
}

def Torch_PrimEnterOp : Torch_Op<"prim.Enter"> {
  let summary = "prim::Enter: begin a with statement";
  let arguments = (ins AnyTorchType:$inp);
  let results = (outs Torch_NoneType:$result);
  let assemblyFormat = "$inp attr-dict `:` qualified(type($inp))";
}

def Torch_PrimExitOp : Torch_Op<"prim.Exit"> {
  let summary = "prim::Exit: end a with statement";
  let arguments = (ins AnyTorchType:$inp);
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = [{
    $inp attr-dict `:` qualified(type($inp)) `->` qualified(type($result))
  }];
}

def Torch_PrimUninitializedOp : Torch_Op<"prim.Uninitialized", [Pure]> {
  let summary = "prim::Uninitialized: a value that nothing looks at";
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Torch_PrimCreateObjectOp : Torch_Op<"prim.CreateObject"> {
  let summary = "prim::CreateObject: an object without attributes";
  let results = (outs Res<Torch_NnModuleType, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict qualified(type($result))";
}

def Torch_PrimGetAttrOp : Torch_Op<"prim.GetAttr"> {
  let summary = "prim::GetAttr: an object's attribute";
  let arguments = (ins StrAttr:$name, Arg<Torch_NnModuleType, "", [MemRead]>:$receiver);
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = [{
    $receiver `[` $name `]` attr-dict `:` qualified(type($receiver)) `->` qualified(type($result))
  }];
}

def Torch_PrimSetAttrOp : Torch_Op<"prim.SetAttr"> {
  let summary = "prim::SetAttr: set an object's attribute";
  let arguments = (ins StrAttr:$name, Arg<Torch_NnModuleType, "", [MemWrite]>:$receiver,
                       AnyTorchType:$value);
  let assemblyFormat = [{
    $receiver `[` $name `]` `=` $value attr-dict
    `:` qualified(type($receiver)) `,` qualified(type($value))
  }];
}

def Torch_PrimCallMethodOp : Torch_Op<"prim.CallMethod"> {
  let summary = "prim::CallMethod: call an object's method";
  let arguments = (ins StrAttr:$name, Torch_NnModuleType:$receiver,
                       Variadic<AnyTorchType>:$methodOperands);
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = [{
    $receiver `[` $name `]` `(` $methodOperands `)` attr-dict
    `:` qualified(type($receiver)) `,` functional-type($methodOperands, $result)
  }];
}

//===----------------------------------------------------------------------===//
// TorchScript's objects
//===----------------------------------------------------------------------===//

def Torch_ClassTypeOp : Torch_Op<"class_type", [
    Symbol, SingleBlockImplicitTerminator<"ClassTypeTerminatorOp">]> {
  let summary = "a TorchScript class: attributes and methods";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$region);
  let assemblyFormat = "$sym_name $region attr-dict";
  let hasRegionVerifier = 1;
}

def Torch_ClassTypeTerminatorOp : Torch_Op<"class_type_terminator", [
    Pure, Terminator, HasParent<"ClassTypeOp">]> {
  let summary = "ends the region of torch.class_type";
  let assemblyFormat = "attr-dict";
}

def Torch_AttrOp : Torch_Op<"attr", [HasParent<"ClassTypeOp">]> {
  let summary = "an attribute that objects of the class have";
  let arguments = (ins StrAttr:$name, TypeAttr:$type, UnitAttr:$isPrivate);
  let assemblyFormat = "(`private` $isPrivate^)? $name `:` $type attr-dict";
}

def Torch_MethodOp : Torch_Op<"method", [
    HasParent<"ClassTypeOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a method of the class: a function that takes the object first";
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$function, UnitAttr:$isPrivate);
  let assemblyFormat = "(`private` $isPrivate^)? $name `,` $function attr-dict";
}

def Torch_NnModuleOp : Torch_Op<"nn_module", [
    SingleBlockImplicitTerminator<"NnModuleTerminatorOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an object of a class with the values of its attributes, in the class's order";
  let results = (outs Torch_NnModuleType:$result);
  let regions = (region SizedRegion<1>:$region);
  let assemblyFormat = "$region attr-dict `:` qualified(type($result))";
  let hasRegionVerifier = 1;
}

def Torch_NnModuleTerminatorOp : Torch_Op<"nn_module_terminator", [
    Pure, Terminator, HasParent<"NnModuleOp">]> {
  let summary = "ends the region of torch.nn_module";
  let assemblyFormat = "attr-dict";
}

def Torch_SlotOp : Torch_Op<"slot", [HasParent<"NnModuleOp">]> {
  let summary = "the value of an attribute";
  let arguments = (ins StrAttr:$name, AnyTorchType:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` qualified(type($value))";
}

//===----------------------------------------------------------------------===//
// Global slots
//===----------------------------------------------------------------------===//

def Torch_GlobalSlotOp : Torch_Op<"global_slot", [Symbol]> {
  let summary = "a global variable";
  let description = "Holds values of `typeBound` or subtypes of it.";
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility,
                       TypeAttr:$typeBound);
  let assemblyFormat = "($sym_visibility^)? $sym_name attr-dict `:` $typeBound";
}

def Torch_GlobalSlotGetOp : Torch_Op<"global_slot.get", [
    MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what a global variable holds now";
  let arguments = (ins FlatSymbolRefAttr:$slot);
  let results = (outs AnyTorchType:$result);
  let assemblyFormat = "$slot attr-dict `:` qualified(type($result))";
}

def Torch_GlobalSlotSetOp : Torch_Op<"global_slot.set", [
    MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "set a global variable";
  let arguments = (ins FlatSymbolRefAttr:$slot, AnyTorchType:$value);
  let assemblyFormat = "$slot `=` $value attr-dict `:` qualified(type($value))";
}

def Torch_GlobalSlotInitOp : Torch_Op<"global_slot.init", [Pure, Terminator]> {
  let summary = "ends a region that computes a global variable's first value";
  let arguments = (ins AnyTorchType:$initialValue);
  let assemblyFormat = "$initialValue attr-dict `:` qualified(type($initialValue))";
}

def Torch_GlobalSlotModuleInitializerOp : Torch_Op<"global_slot.module_initializer", [
    IsolatedFromAbove, SingleBlock]> {
  let summary = "computes the first values of all global variables of a module";
  let regions = (region SizedRegion<1>:$initializer);
  let assemblyFormat = "$initializer attr-dict";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Torch_InitializeGlobalSlotsOp : Torch_Op<"initialize.global_slots", [
    Terminator, HasParent<"GlobalSlotModuleInitializerOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "ends torch.global_slot.module_initializer: each variable with its value";
  let arguments = (ins TypedArrayAttrBase<FlatSymbolRefAttr, "symbol references">:$slotSymNames,
                       Variadic<AnyTorchType>:$initialValues);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Symbolic shapes
//===----------------------------------------------------------------------===//

def Torch_SymbolicIntOp : Torch_Op<"symbolic_int", [Pure]> {
  let summary = "a size that isn't known, with what is known of it";
  let arguments = (ins StrAttr:$symbol_name, I64Attr:$min_val, I64Attr:$max_val);
  let results = (outs Torch_IntType:$result);
  let assemblyFormat = [{
    $symbol_name ` ` `{` `min_val` `=` $min_val `,` `max_val` `=` $max_val `}` attr-dict
    `:` qualified(type($result))
  }];
}

def Torch_BindSymbolicShapeOp : Torch_Op<"bind_symbolic_shape"> {
  let summary = "a tensor's sizes as expressions of symbolic sizes";
  let arguments = (ins AnyTorchTensorType:$operand, Variadic<Torch_IntType>:$shape_symbols,
                       Builtin_AffineMapAttr:$shape_expressions);
  let assemblyFormat = [{
    $operand `,` `[` $shape_symbols `]` `,` custom<ShapeExpressions>($shape_expressions) attr-dict
    `:` qualified(type($operand))
  }];
  let hasVerifier = 1;
}

def Torch_RuntimeAssertOp : Torch_Op<"runtime.assert"> {
  let summary = "stop with a message unless the condition holds";
  let arguments = (ins Torch_BoolType:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

//===----------------------------------------------------------------------===//
// Calculations of shapes and dtypes
//===----------------------------------------------------------------------===//

class Torch_CalculateOp<string what, string joint>
    : Torch_Op<what # ".calculate", [RecursiveMemoryEffects, SingleBlock]> {
  let summary = "results, and a program that calculates each one's " # what;
  let results = (outs Variadic<AnyTorchType>:$results);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$calculation);
  let assemblyFormat = "$body `" # joint # "` $calculation attr-dict `:` qualified(type($results))";
}

class Torch_CalculateYieldOp<string mnemonic, string parent>
    : Torch_Op<mnemonic, [Pure, Terminator, HasParent<parent>]> {
  let summary = "ends a region of " # parent;
  let arguments = (ins Variadic<AnyTorchType>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` qualified(type($results)))?";
}

def Torch_ShapeCalculateOp : Torch_CalculateOp<"shape", "shapes">;
def Torch_ShapeCalculateYieldOp
    : Torch_CalculateYieldOp<"shape.calculate.yield", "ShapeCalculateOp">;
def Torch_ShapeCalculateYieldShapesOp
    : Torch_CalculateYieldOp<"shape.calculate.yield.shapes", "ShapeCalculateOp">;

def Torch_DtypeCalculateOp : Torch_CalculateOp<"dtype", "dtypes">;
def Torch_DtypeCalculateYieldOp
    : Torch_CalculateYieldOp<"dtype.calculate.yield", "DtypeCalculateOp">;
def Torch_DtypeCalculateYieldDtypesOp
    : Torch_CalculateYieldOp<"dtype.calculate.yield.dtypes", "DtypeCalculateOp">;

def Torch_PromoteDtypesOp : Torch_Op<"promote_dtypes", [Pure]> {
  let summary = "the dtype that PyTorch's promotion gives for tensors of these ranks and dtypes";
  let arguments = (ins Torch_ListType:$ranks, Torch_ListType:$dtypes);
  let results = (outs Torch_IntType:$result);
  let assemblyFormat = "$ranks `,` $dtypes attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Operators without a schema
//===----------------------------------------------------------------------===//

def Torch_OperatorOp : Torch_Op<"operator"> {
  let summary = "a call of an operator that this dialect doesn't know";
  let description = "`name` is what would follow `torch.` if it did: `ns.name.overload`.";
  let arguments = (ins StrAttr:$name, Variadic<AnyTorchType>:$operands);
  let results = (outs Variadic<AnyTorchType>:$results);
  let regions = (region VariadicRegion<AnyRegion>:$regions);
  let assemblyFormat = [{
    $name `(` $operands `)` attr-dict `:` functional-type($operands, $results) $regions
  }];
}

def Torch_OperatorTerminatorOp : Torch_Op<"operator_terminator", [
    Pure, Terminator, ReturnLike, HasParent<"OperatorOp">]> {
  let summary = "ends a region of torch.operator";
  let arguments = (ins Variadic<AnyTorchType>:$operands);
  let assemblyFormat = "$operands attr-dict `:` custom<Types>(type($operands))";
}

def Torch_LinearParamsCreateOp : Torch_ReadingOp<"linear_params.create"> {
  let summary = "packed weights of a quantised linear layer";
  let arguments = (ins AnyTorchTensorType:$weight, Optional<AnyTorchTensorType>:$bias);
  let results = (outs Torch_LinearParamsType:$result);
  let assemblyFormat = [{
    $weight (`,` $bias^)? attr-dict `:` qualified(type($weight)) (`,` qualified(type($bias))^)?
  }];
}

def Torch_PerTensorAffineCreateOp : Torch_ReadingOp<"per_tensor_affine.create"> {
  let summary = "a quantised tensor from its integers, its scale and its zero point";
  let arguments = (ins AnyTorchTensorType:$int_repr, Torch_FloatType:$scale, Torch_IntType:$offset);
  let results = (outs AnyTorchTensorType:$result);
  let assemblyFormat = [{
    $int_repr `,` $scale `,` $offset attr-dict
    `:` qualified(type($int_repr)) `,` qualified(type($scale)) `,` qualified(type($offset))
    `->` qualified(type($result))
  }];
}

def Torch_ValsemVariantAtenBernoulliFloatOp : Torch_Op<"valsem.aten.bernoulli.float"> {
  let summary = "aten::bernoulli_.float without the write: PyTorch has no such operator";
  let arguments = (ins AnyTorchTensorType:$self, Torch_FloatType:$p,
                       AnyTypeOf<[Torch_NoneType, Torch_GeneratorType,
                                  Torch_OptionalType]>:$generator);
  let results = (outs AnyTorchTensorType:$result);
  let assemblyFormat = [{
    $self `,` $p `,` $generator attr-dict
    `:` qualified(type($self)) `,` qualified(type($p)) `,` qualified(type($generator))
    `->` qualified(type($result))
  }];
}

def Torch_HigherOrderFlexAttentionOp : Torch_ReadingOp<"hop_flex_attention", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "torch.ops.higher_order.flex_attention";
  let description = "`score_mod_fn` and `mask_mod_fn` name the functions that change the scores.";
  let arguments = (ins AnyTorchTensorType:$query, AnyTorchTensorType:$key,
                       AnyTorchTensorType:$value,
                       AnyTorchType:$scale, Torch_BoolType:$return_lse,
                       Torch_BoolType:$return_max_scores,
                       OptionalAttr<BoolAttr>:$enable_gqa,
                       OptionalAttr<FlatSymbolRefAttr>:$score_mod_fn,
                       OptionalAttr<FlatSymbolRefAttr>:$mask_mod_fn);
  let results = (outs AnyTorchType:$output, AnyTorchType:$logsumexp, AnyTorchType:$max_scores);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $scale `,` $return_lse `,` $return_max_scores attr-dict
    `:` qualified(type($query)) `,` qualified(type($key)) `,` qualified(type($value)) `,`
    qualified(type($scale)) `,` qualified(type($return_lse)) `,` qualified(type($return_max_scores))
    `->` qualified(type($output)) `,` qualified(type($logsumexp)) `,` qualified(type($max_scores))
  }];
}

#endif // TORCH_MLIR_DIALECT_TORCHOPS_TD

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every structural operator, printed as MLIR prints it.
module {
  %int5 = torch.constant.int 5 {test = "value"}
  %float-1.500000e00 = torch.constant.float -1.500000e+00
  %0 = "torch.constant.number"() <{value = 3 : i64}> : () -> !torch.number
  %1 = "torch.constant.number"() <{value = 3.000000e+00 : f64}> : () -> !torch.number
  %cpu = torch.constant.device "cpu"
  %none = torch.constant.none
  %true = torch.constant.bool true
  %str = torch.constant.str "x"
  %2 = torch.prim.ListConstruct  : () -> !torch.list<int>
  %3 = torch.prim.ListConstruct %int5, %int5 : (!torch.int, !torch.int) -> !torch.list<int>
  %4:2 = torch.prim.ListUnpack %3 : !torch.list<int> -> !torch.int, !torch.int
  %5 = torch.prim.TupleConstruct %int5, %float-1.500000e00 : !torch.int, !torch.float -> !torch.tuple<int, float>
  %6:2 = torch.prim.TupleUnpack %5 : !torch.tuple<int, float> -> !torch.int, !torch.float
  %7 = torch.prim.TupleIndex %5, %int5 : !torch.tuple<int, float>, !torch.int -> !torch.int
  %8 = torch.prim.DictConstruct keys(%str : !torch.str) values(%int5 : !torch.int) -> !torch.dict<str, int>
  %9 = torch.prim.DictConstruct keys() values() -> !torch.dict<str, int>
  torch.prim.Print(%int5, %str) : !torch.int, !torch.str
  torch.prim.RaiseException %str, %none : !torch.str, !torch.none
  %10 = torch.prim.Uninitialized : !torch.int
  %11 = torch.prim.unchecked_cast %0 : !torch.number -> !torch.int
  %12 = torch.derefine %int5 : !torch.int to !torch.optional<int>
  %13 = torch.vtensor.literal(dense<1.000000e+00> : tensor<2xf32>) : !torch.vtensor<[2],f32>
  %14 = torch.vtensor.literal(dense_resource<foo> : tensor<2xf32>) : !torch.vtensor<[2],f32>
  %15 = torch.tensor.literal(dense<1.000000e+00> : tensor<2xf32>) : !torch.tensor
  %16 = torch.tensor_static_info_cast %13 : !torch.vtensor<[2],f32> to !torch.vtensor
  %17 = torch.copy.to_tensor %13 : !torch.tensor<[2],f32>
  %18 = torch.copy.to_vtensor %17 : !torch.vtensor<[2],f32>
  torch.overwrite.tensor.contents %18 overwrites %17 : !torch.vtensor<[2],f32>, !torch.tensor<[2],f32>
  %19 = torch.prim.dtype %13 : !torch.vtensor<[2],f32> -> !torch.int
  %20 = torch.prim.layout %13 : !torch.vtensor<[2],f32> -> !torch.int
  %21 = torch.prim.device %13 : !torch.vtensor<[2],f32> -> !torch.Device
  %22 = torch.prim.min.int %int5, %int5 : !torch.int, !torch.int -> !torch.int
  %23 = torch.prim.max.self_int %2 : !torch.list<int> -> !torch.int
  %24 = torch.prim.NumToTensor.Scalar %int5 : !torch.int -> !torch.tensor
  %25 = torch.prim.abs.Scalar %int5 : !torch.int -> !torch.number
  %26 = torch.prim.tolist(%int5, %int5) : !torch.int, !torch.int -> !torch.list<int>
  torch.prim.Store "v", %int5 : !torch.int
  %27 = torch.prim.Load "v" : !torch.int
  %28 = torch.prim.Enter %int5 : !torch.int
  %29 = torch.prim.Exit %int5 : !torch.int -> !torch.tensor
  %30 = torch.prim.CreateObject !torch.nn.Module<"__torch__.M">
  %31 = torch.prim.GetAttr %30["x"] : !torch.nn.Module<"__torch__.M"> -> !torch.int
  torch.prim.SetAttr %30["x"] = %int5 : !torch.nn.Module<"__torch__.M">, !torch.int
  %32 = torch.prim.CallMethod %30["m"] (%int5) : !torch.nn.Module<"__torch__.M">, (!torch.int) -> !torch.int
  %33 = torch.prim.CallMethod %30["m"] () : !torch.nn.Module<"__torch__.M">, () -> !torch.int
  %34 = torch.linear_params.create %15, %15 : !torch.tensor, !torch.tensor
  %35 = torch.linear_params.create %15 : !torch.tensor
  %36 = torch.per_tensor_affine.create %15, %float-1.500000e00, %int5 : !torch.tensor, !torch.float, !torch.int -> !torch.tensor
  %37 = torch.symbolic_int "s0" {min_val = 2, max_val = 9223372036854775807} : !torch.int
  torch.bind_symbolic_shape %16, [%37], affine_map<()[s0] -> (s0)> : !torch.vtensor
  torch.bind_symbolic_shape %16, [], affine_map<() -> (1)> : !torch.vtensor
  torch.runtime.assert %true, "hm"
  %38:2 = torch.operator "ns.x"(%int5, %float-1.500000e00) {a = 3 : i64} : (!torch.int, !torch.float) -> (!torch.int, !torch.float) 
  torch.operator "ns.x"() : () -> () 
  %39 = torch.operator "ns.r"(%int5) : (!torch.int) -> !torch.int {
  ^bb0(%arg0: !torch.int):
    torch.operator_terminator %arg0 : !torch.int
  }, {
    torch.operator_terminator %true : !torch.bool
  }
  %40 = torch.prim.If %true -> (!torch.int) {
    torch.prim.If.yield %int5 : !torch.int
  } else {
    torch.prim.If.yield %int5 : !torch.int
  }
  torch.prim.If %true -> () {
    torch.prim.If.yield
  } else {
    torch.prim.If.yield
  } {q = 1 : i64}
  %41 = torch.prim.Loop %int5, %true, init(%int5) {
  ^bb0(%arg0: !torch.int, %arg1: !torch.int):
    torch.prim.Loop.condition %true, iter(%arg1 : !torch.int)
  } : (!torch.int, !torch.bool, !torch.int) -> !torch.int
  torch.prim.Loop %int5, %true, init() {
  ^bb0(%arg0: !torch.int):
    torch.prim.Loop.condition %true, iter()
  } : (!torch.int, !torch.bool) -> ()
  torch.global_slot @gs : !torch.int
  torch.global_slot "private" @gs2 {q = 1 : i64} : !torch.tensor
  %42 = torch.global_slot.get @gs : !torch.int
  torch.global_slot.set @gs = %42 : !torch.int
  torch.global_slot.module_initializer {
    %int5_3 = torch.constant.int 5
    %50 = torch.tensor.literal(dense<1.000000e+00> : tensor<2xf32>) : !torch.tensor
    torch.initialize.global_slots [
      @gs(%int5_3 : !torch.int)
      @gs2(%50 : !torch.tensor)
    ]
  }
  %43 = torch.shape.calculate {
    torch.shape.calculate.yield %13 : !torch.vtensor<[2],f32>
  } shapes {
    torch.shape.calculate.yield.shapes %2 : !torch.list<int>
  } : !torch.vtensor<[2],f32>
  %44 = torch.dtype.calculate {
    torch.dtype.calculate.yield %13 : !torch.vtensor<[2],f32>
  } dtypes {
    torch.dtype.calculate.yield.dtypes %int5 : !torch.int
  } : !torch.vtensor<[2],f32>
  %45 = torch.prim.ListConstruct  : () -> !torch.list<optional<int>>
  %46 = torch.promote_dtypes %45, %2 : (!torch.list<optional<int>>, !torch.list<int>) -> !torch.int
  %47 = torch.valsem.aten.bernoulli.float %13, %float-1.500000e00, %none : !torch.vtensor<[2],f32>, !torch.float, !torch.none -> !torch.vtensor<[2],f32>
  func.func private @f(%arg0: !torch.nn.Module<"__torch__.M">) {
    return
  }
  func.func private @g(%arg0: !torch.vtensor {torch.type_bound = !torch.vtensor<[2],f32>}) {
    return
  }
  torch.class_type @__torch__.M {
    torch.attr "x" : !torch.int
    torch.attr private "y" : !torch.int
    torch.method private "m", @f
  }
  %48 = torch.nn_module {
    torch.slot "x", %int5 : !torch.int
    torch.slot "y", %int5 : !torch.int
  } : !torch.nn.Module<"__torch__.M">
  torch.class_type @empty {
  }
  func.func private @score(%arg0: !torch.vtensor) -> !torch.vtensor {
    return %arg0 : !torch.vtensor
  }
  %49 = torch.vtensor.literal(dense<1.000000e+00> : tensor<2x4x8x16xf32>) : !torch.vtensor<[2,4,8,16],f32>
  %output, %logsumexp, %max_scores = torch.hop_flex_attention %49, %49, %49, %float-1.500000e00, %true, %true {enable_gqa = false, score_mod_fn = @score} : !torch.vtensor<[2,4,8,16],f32>, !torch.vtensor<[2,4,8,16],f32>, !torch.vtensor<[2,4,8,16],f32>, !torch.float, !torch.bool, !torch.bool -> !torch.vtensor<[2,4,8,16],f32>, !torch.none, !torch.none
  %output_0, %logsumexp_1, %max_scores_2 = torch.hop_flex_attention %49, %49, %49, %float-1.500000e00, %true, %true : !torch.vtensor<[2,4,8,16],f32>, !torch.vtensor<[2,4,8,16],f32>, !torch.vtensor<[2,4,8,16],f32>, !torch.float, !torch.bool, !torch.bool -> !torch.vtensor<[2,4,8,16],f32>, !torch.none, !torch.none
}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE as a backend: modules become programs of its virtual machine, and run on a device.

    backend = IreeBackend()
    program = backend.load(backend.compile(module))
    result = program(torch.ones(2, 3))

Compiling needs the package iree-base-compiler, running iree-base-runtime and PyTorch.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import ir
from ..compiler_utils import TorchMlirCompilerError
from . import iree_tools
from .iree_tools import Diagnostic, IreeError, group_refusals

if TYPE_CHECKING:
    import torch

__all__ = [
    "Diagnostic",
    "IreeArtifact",
    "IreeBackend",
    "IreeError",
    "IreeProgram",
    "Signature",
    "ValueType",
    "group_refusals",
]

# IREE's runtime calls element types so. Torch's integers have a sign; the runtime's have too.
_ELEMENT_TYPES = {
    "i1": "BOOL_8",
    "si8": "SINT_8",
    "si16": "SINT_16",
    "si32": "SINT_32",
    "si64": "SINT_64",
    "ui8": "UINT_8",
    "ui16": "UINT_16",
    "ui32": "UINT_32",
    "ui64": "UINT_64",
    "f16": "FLOAT_16",
    "bf16": "BFLOAT_16",
    "f32": "FLOAT_32",
    "f64": "FLOAT_64",
    "complex<f32>": "COMPLEX_64",
    "complex<f64>": "COMPLEX_128",
    "f8E4M3FN": "FLOAT_8_E4M3_FN",
    "f8E4M3FNUZ": "FLOAT_8_E4M3_FNUZ",
    "f8E5M2": "FLOAT_8_E5M2",
    "f8E5M2FNUZ": "FLOAT_8_E5M2_FNUZ",
    "f8E8M0FNU": "FLOAT_8_E8M0_FNU",
}
# `!torch.vtensor<[2,?],f32>`, and `tensor<2x?xf32>` of modules that are lowered already.
_TORCH_TENSOR = re.compile(r"^!torch\.(v?)tensor(?:<(?:\[([^\]]*)\]|\*|unk)(?:,([^,]+|unk))?.*>)?$")
_BUILTIN_TENSOR = re.compile(r"^tensor<((?:(?:\d+|\?)x)*)(.+?)(?:, .*)?>$")
_SCALARS = {
    "!torch.int": "int",
    "!torch.float": "float",
    "!torch.bool": "bool",
    "i64": "int",
    "i32": "int",
    "f64": "float",
    "f32": "float",
    "i1": "bool",
}
# Those that IREE's Torch input pipeline takes away.
_TORCH_DIALECTS = {"torch", "torch_c", "tm_tensor"}
# Bytecode tells an operation's properties by their order. Where IREE's MLIR is of another version
# than ours, the order differs in some dialects; in these it is settled.
_BYTECODE_DIALECTS = {"builtin", "func", "torch"}


@dataclass(frozen=True)
class ValueType:
    """The type of an argument or result.

    Attributes:
        text: how MLIR writes the type.
        kind: `tensor`, `int`, `float` or `bool`.
        element: the element type of a tensor in the Torch dialect's terms, e.g. `ui8`; "" where
            the type leaves it open.
        shape: the sizes of a tensor, None for an open one; None where the rank is open.
        mutable: the argument is written in place.
        precedes_writes: the result follows from nothing that the function writes to an argument.
    """

    text: str
    kind: str
    element: str = ""
    shape: tuple[int | None, ...] | None = None
    mutable: bool = False
    precedes_writes: bool = False


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives."""

    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]


@dataclass(frozen=True)
class IreeArtifact:
    """A compiled module; can be pickled.

    Attributes:
        binary: the flatbuffer that IREE's tools and runtime read.
        signatures: the public functions, in the module's order.
    """

    binary: bytes
    signatures: Mapping[str, Signature]


class IreeBackend:
    """Compiles with IREE for one target, and runs on one device.

    Args:
        target: the compiler's backend: `llvm-cpu`, `vmvx`, `vulkan-spirv`, …
        device: the runtime's device: `local-task` (the CPU, many threads), `local-sync`, …
        flags: further flags of `iree-compile`. Those that come here by default keep the dtypes
            of the program (IREE computes f64 in f32 otherwise) and build for the machine's own
            CPU; the same flags given here override them.
    """

    def __init__(
        self, target: str = "llvm-cpu", device: str = "local-task", flags: Sequence[str] = ()
    ) -> None:
        self.target = target
        self.device = device
        self.flags = tuple(flags)

    def compile(self, module: ir.Module) -> IreeArtifact:
        """Compile a module of the Torch dialect, or one that is lowered to builtin tensors.

        Raises:
            IreeError: IREE refuses the module; the message has its first diagnostics with the
                places in the user's program.
            TorchMlirCompilerError: a function takes or gives what IREE's interface has no type
                for, or iree-base-compiler is not installed.
        """
        signatures = {name: _signature(name, function) for name, function in _functions(module)}
        if not signatures:
            raise TorchMlirCompilerError("the module has no public function to compile")
        dialects = _dialects(module)
        takes_torch = any(
            "!torch." in type.text
            for signature in signatures.values()
            for type in (*signature.arguments, *signature.results)
        )
        is_torch = takes_torch or bool(dialects & _TORCH_DIALECTS)
        binary, _ = iree_tools.run(
            "iree-compile",
            self._flags("torch" if is_torch else "auto"),
            _source(module, dialects),
            f"IREE does not compile the module for {self.target}:",
        )
        return IreeArtifact(binary, signatures)

    def _flags(self, input_type: str) -> list[str]:
        defaults = [
            f"--iree-input-type={input_type}",
            f"--iree-hal-target-backends={self.target}",
            "--iree-input-demote-f64-to-f32=false",
        ]
        if self.target == "llvm-cpu":
            defaults.append("--iree-llvmcpu-target-cpu=host")
        given = {flag.split("=")[0] for flag in self.flags}
        return [*(flag for flag in defaults if flag.split("=")[0] not in given), *self.flags]

    def load(self, artifact: IreeArtifact) -> IreeProgram:
        """Make a compiled module ready to run.

        Raises:
            TorchMlirCompilerError: iree-base-runtime is not installed, has no such device, or
                does not take the binary.
        """
        return IreeProgram(artifact, self.device)


class IreeProgram:
    """A compiled module on a device.

    A call takes and gives `torch.Tensor`s on the CPU, and Python's `int`, `float` and `bool`;
    one result comes bare, several as a tuple, none as None. Tensors that the module writes to
    are written in place.
    """

    def __init__(self, artifact: IreeArtifact, device: str) -> None:
        runtime = _runtime()
        try:
            self._device = runtime.get_device(device)
        except (ValueError, RuntimeError) as error:
            raise TorchMlirCompilerError(f"IREE has no device {device!r}: {error}") from None
        try:
            # A context keeps its modules, and the modules their instance.
            instance = runtime.VmInstance()
            hal = runtime.create_hal_module(instance, self._device)
            self._module = runtime.VmModule.copy_buffer(instance, artifact.binary)
            self._context = runtime.VmContext(instance, modules=[hal, self._module])
        except (ValueError, RuntimeError) as error:
            raise TorchMlirCompilerError(
                f"IREE's runtime does not load the module on {device!r}: {error}"
            ) from None
        self._signatures = artifact.signatures

    def __call__(self, *args: Any) -> Any:
        """Call the only public function, or `main` among several.

        Raises:
            ValueError: there is no such function; or as its call does.
        """
        names = list(self._signatures)
        if len(names) != 1 and "main" not in names:
            raise ValueError(f"none of the functions is called main: {', '.join(names)}")
        return self.function("main" if "main" in names else names[0])(*args)

    def function(self, name: str) -> Callable[..., Any]:
        """The public function `name`, to be called with its arguments.

        The call raises a TypeError or ValueError if arguments do not fit the function's types,
        and a RuntimeError if IREE's runtime fails.

        Raises:
            ValueError: there is no such function.
        """
        if name not in self._signatures:
            raise ValueError(f"no function {name!r}: there are {', '.join(self._signatures)}")
        signature = self._signatures[name]
        vm_function = self._module.lookup_function(name)

        def call(*args: Any) -> Any:
            return self._call(name, vm_function, signature, args)

        call.__name__ = call.__qualname__ = name
        return call

    def _call(self, name: str, function: Any, signature: Signature, args: Sequence[Any]) -> Any:
        if len(args) != len(signature.arguments):
            raise ValueError(
                f"{name} takes {len(signature.arguments)} arguments, {len(args)} are given"
            )
        runtime = _runtime()
        inputs = runtime.VmVariantList(len(args))
        written = []
        # IREE gives an argument's own buffer back for what the argument held, even where the
        # function writes to it later.
        keeps = any(type.precedes_writes for type in signature.results)
        for index, (type, value) in enumerate(zip(signature.arguments, args, strict=True)):
            _check(f"argument {index} of {name}", type, value)
            if type.kind == "float":
                inputs.push_float(value)
            elif type.kind != "tensor":
                inputs.push_int(int(value))
            else:
                view = _to_device(self._device, value, type)
                inputs.push_ref(view)
                if type.mutable:
                    before = value.detach().clone() if keeps else None
                    written.append((value, view, before))
        outputs = runtime.VmVariantList(len(signature.results))
        self._context.invoke(function, inputs, outputs)
        held = {_address(view): before for _, view, before in written}
        results = [
            _result(outputs, index, type, held) for index, type in enumerate(signature.results)
        ]
        for tensor, view, _ in written:
            tensor.detach().copy_(_to_host(view, tensor.dtype))
        if not results:
            return None
        return results[0] if len(results) == 1 else tuple(results)


def _runtime() -> Any:
    try:
        import iree.runtime
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("iree"):
            raise
        raise iree_tools.NotInstalled(
            f"IREE's runtime is not installed: pip install {iree_tools.RUNTIME_PACKAGE}"
        ) from None
    return iree.runtime


def _functions(module: ir.Module) -> list[tuple[str, ir.OpView]]:
    """The public functions by name."""
    functions = []
    for operation in module.body.operations:
        if operation.operation.name != "func.func":
            continue
        attributes = operation.attributes
        if "sym_visibility" in attributes and (
            ir.StringAttr(attributes["sym_visibility"]).value != "public"
        ):
            continue
        functions.append((ir.StringAttr(attributes["sym_name"]).value, operation))
    return functions


def _dialects(module: ir.Module) -> set[str]:
    """The dialects of the module's operations."""
    names: set[str] = set()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        names.add(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return {name.split(".")[0] for name in names}


def _source(module: ir.Module, dialects: set[str]) -> ir.Module | bytes:
    """What the compiler reads: the module itself as bytecode, or generic text."""
    if dialects <= _BYTECODE_DIALECTS:
        return module
    text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    assert isinstance(text, str)
    return text.encode()


def _signature(name: str, function: ir.OpView) -> Signature:
    type = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    arguments = [
        _value_type(f"argument {index} of {name}", str(part))
        for index, part in enumerate(type.inputs)
    ]
    results = [
        _value_type(f"result {index} of {name}", str(part))
        for index, part in enumerate(type.results)
    ]
    if any(argument.mutable for argument in arguments):
        results = [
            replace(result, precedes_writes=precedes)
            for result, precedes in zip(results, _precede_writes(function), strict=True)
        ]
    return Signature(tuple(arguments), tuple(results))


def _precede_writes(function: ir.OpView) -> list[bool]:
    """For each result of a function, whether it follows from nothing that is written."""
    operations = [operation.operation for operation in function.regions[0].blocks[0].operations]
    written = {
        operation.operands[0]
        for operation in operations
        if operation.name == "torch.overwrite.tensor.contents"
    }
    for operation in operations:
        if any(operand in written for operand in operation.operands):
            written.update(operation.results)
    return [operand not in written for operand in operations[-1].operands]


def _value_type(what: str, text: str) -> ValueType:
    if text in _SCALARS:
        return ValueType(text, _SCALARS[text])
    if match := _TORCH_TENSOR.match(text):
        value, sizes, element = match.groups()
        shape = None
        if sizes is not None:
            shape = tuple(_size(size) for size in sizes.split(",") if size)
        element = "" if element in (None, "unk") else element
        mutable = not value
    elif match := _BUILTIN_TENSOR.match(text):
        shape = tuple(_size(size) for size in match[1].split("x")[:-1])
        # Builtin integers have no sign; PyTorch's have one, uint8 and its like aside.
        element = re.sub(r"^i(?=8$|16$|32$|64$)", "si", match[2])
        mutable = False
    else:
        raise TorchMlirCompilerError(
            f"{what} has type {text}: IREE's functions take and give tensors, int, float and bool"
        )
    if element and element not in _ELEMENT_TYPES:
        raise TorchMlirCompilerError(
            f"{what} has type {text}: IREE's runtime has no tensors of {element}"
        )
    return ValueType(text, "tensor", element, shape, mutable)


def _size(text: str) -> int | None:
    return None if text.strip() == "?" else int(text)


def _check(what: str, type: ValueType, value: Any) -> None:
    import torch

    if type.kind != "tensor":
        wanted = {"int": (int,), "float": (float, int), "bool": (bool,)}[type.kind]
        if not isinstance(value, wanted) or (type.kind == "int" and isinstance(value, bool)):
            raise TypeError(f"{what} has to be a Python {type.kind}, not {value!r}")
        return
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{what} has to be a tensor ({type.text}), not {value!r}")
    if value.layout is not torch.strided or value.is_quantized:
        raise ValueError(f"{what} is {value.layout} {value.dtype}; IREE takes strided tensors")
    if type.element and value.dtype is not _dtype(type.element):
        raise ValueError(f"{what} has dtype {value.dtype}, but the module takes {type.text}")
    if not type.element and value.dtype not in _element_texts():
        raise ValueError(f"{what} has dtype {value.dtype}, which IREE's runtime lacks")
    if type.shape is not None:
        sizes = tuple(value.shape)
        fits = len(sizes) == len(type.shape) and all(
            wanted is None or wanted == size for wanted, size in zip(type.shape, sizes)
        )
        if not fits:
            raise ValueError(f"{what} has shape {list(sizes)}, but the module takes {type.text}")


def _element_texts() -> dict[torch.dtype, str]:
    from ..dtypes import DTYPE_TO_ELEMENT_TYPE

    return {dtype: text for dtype, text in DTYPE_TO_ELEMENT_TYPE.items() if text in _ELEMENT_TYPES}


def _dtype(element: str) -> torch.dtype:
    for dtype, text in _element_texts().items():
        if text == element:
            return dtype
    raise TorchMlirCompilerError(f"the installed PyTorch has no dtype for {element}")


def _to_device(device: Any, tensor: torch.Tensor, type: ValueType) -> Any:
    """A buffer view with a copy of the tensor's contents, row by row."""
    runtime = _runtime()
    data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    size = data.numel() * data.element_size()
    # The bytes as they are: NumPy knows neither bfloat16 nor the eight-bit floats.
    memory = (ctypes.c_ubyte * size).from_address(data.data_ptr()) if size else b""
    buffer = device.allocator.allocate_buffer_copy(
        memory_type=runtime.MemoryType.DEVICE_LOCAL,
        allowed_usage=runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING,
        device=device,
        buffer=memory,
    )
    element = type.element or _element_texts()[data.dtype]
    element_type = getattr(runtime.HalElementType, _ELEMENT_TYPES[element])
    return runtime.HalBufferView(buffer, list(data.shape), element_type)


def _result(
    outputs: Any, index: int, type: ValueType, held: Mapping[int, torch.Tensor | None]
) -> Any:
    """A result as PyTorch or Python has it; `held` is what written buffers held before."""
    if type.kind == "bool":
        return bool(outputs.get_variant(index))
    if type.kind != "tensor":
        return outputs.get_variant(index)
    runtime = _runtime()
    view = outputs.get_as_object(index, runtime.HalBufferView)
    element = type.element
    if not element:
        names = {name: text for text, name in _ELEMENT_TYPES.items()}
        element = names[runtime.HalElementType(view.element_type).name.replace("_INT", "_SINT")]
    dtype = _dtype(element)
    if type.precedes_writes and held:
        before = held.get(_address(view))
        if before is not None:
            return before.contiguous().view(dtype).reshape(list(view.shape))
    return _to_host(view, dtype)


def _address(view: Any) -> int:
    import numpy

    # IREE's runtime depends on NumPy.
    memory = view.map().asarray([view.byte_length], numpy.dtype(numpy.uint8))
    return int(memory.ctypes.data)


def _to_host(view: Any, dtype: torch.dtype) -> torch.Tensor:
    import torch

    shape = list(view.shape)
    if not view.byte_length:
        return torch.empty(shape, dtype=dtype)
    with memoryview(view.map()) as memory:
        contents = bytearray(memory)  # a copy, as the buffer goes back to the device
    return torch.frombuffer(contents, dtype=torch.uint8).view(dtype).reshape(shape)

// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an archive holds as values: tensors, containers and objects with their attributes.

#include "torchscript/Values.h"

#include "torchscript/Dtypes.h"
#include "torchscript/Locations.h"
#include "torchscript/Memory.h"
#include "torchscript/Quantized.h"

#include "capi/Resources.h"
#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <ATen/core/class_type.h>
#include <ATen/core/enum_type.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <sstream>

namespace torch_mlir::torchscript {

using c10::IValue;
using c10::TypePtr;

//===----------------------------------------------------------------------===//
// Contents of tensors
//===----------------------------------------------------------------------===//

namespace {

/// Whether there is one element in memory that stands for all.
bool isOneElement(const Layout &layout) {
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] > 1 && layout.strides[i] != 0)
      return false;
  }
  return layout.count > 0;
}

/// Copies the elements in the order in which they read.
void copyElements(const Layout &layout, size_t itemSize, char *to) {
  // Dimensions of one element say nothing, and neighbours that lie like one are one.
  std::vector<std::pair<uint64_t, uint64_t>> dimensions; // (size, bytes from one to the next)
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] == 1)
      continue;
    auto size = static_cast<uint64_t>(layout.sizes[i]);
    uint64_t step = static_cast<uint64_t>(layout.strides[i]) * itemSize;
    if (!dimensions.empty() && dimensions.back().second == step * size)
      dimensions.back() = {dimensions.back().first * size, step};
    else
      dimensions.emplace_back(size, step);
  }
  uint64_t run = itemSize;
  if (!dimensions.empty() && dimensions.back().second == itemSize) {
    run *= dimensions.back().first;
    dimensions.pop_back();
  }
  std::vector<uint64_t> index(dimensions.size(), 0);
  const char *from = layout.data;
  for (uint64_t left = layout.count * itemSize; left; left -= run) {
    std::memcpy(to, from, run);
    to += run;
    for (size_t i = dimensions.size(); i-- > 0;) {
      auto [size, step] = dimensions[i];
      from += step;
      if (++index[i] < size)
        break;
      from -= step * size;
      index[i] = 0;
    }
  }
}

/// Elements of numbers: complex ones are two.
size_t getPartSize(const at::Tensor &tensor) {
  return tensor.is_complex() ? tensor.itemsize() / 2 : tensor.itemsize();
}

/// Changes the sign of each number of a buffer, from one on, in steps.
void negate(char *data, size_t size, size_t partSize, size_t first, size_t step) {
  // The sign is the highest bit, which little-endian numbers have last.
  for (size_t i = first * partSize; i + partSize <= size; i += step * partSize)
    data[i + partSize - 1] = static_cast<char>(data[i + partSize - 1] ^ 0x80);
}

} // namespace

Literals::Literals(Types &types, uint64_t maxCopied, StoredDtype archive)
    : types(types), maxCopied(maxCopied), archive(std::move(archive)) {}

c10::ScalarType Literals::getDtype(const at::Tensor &tensor) const {
  int dtype = archive && tensor.has_storage() ? archive(tensor.storage().data()) : -1;
  const Dtype *noted = dtype < 0 ? nullptr : torchscript::getDtype(static_cast<size_t>(dtype));
  if (!noted || noted->bytes != tensor.itemsize())
    return tensor.scalar_type();
  return static_cast<c10::ScalarType>(dtype);
}

static MlirType getRankedTensor(c10::IntArrayRef sizes, MlirType element) {
  return mlirRankedTensorTypeGet(static_cast<intptr_t>(sizes.size()), sizes.data(), element,
                                 mlirAttributeGetNull());
}

MlirAttribute Literals::getBlob(const void *data, size_t size, size_t alignment, MlirType type,
                                c10::ScalarType dtype, const std::string &name, void *owner,
                                void (*release)(void *, const void *, size_t, size_t)) {
  // Names end where MLIR's words end, and are counted as MLIR would count them, which starts
  // anew for each.
  std::string own;
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    bool isPlain = byte < 0x80 && (std::isalnum(byte) || c == '_' || c == '.' || c == '$');
    own.push_back(isPlain ? c : '_');
  }
  if (own.empty() || !(std::isalpha(static_cast<unsigned char>(own.front())) || own.front() == '_'))
    own.insert(0, "_");
  unsigned number = names[own]++;
  if (number)
    own += "_" + std::to_string(number);
  MlirAttribute blob = mlirUnmanagedDenseResourceElementsAttrGet(
      type, wrap(own), const_cast<void *>(data), size, alignment, /*dataIsMutable=*/false, release,
      owner);
  blobs.emplace(std::make_tuple(data, size, dtype), blob);
  return blob;
}

Literals::Contents Literals::getContents(const at::Tensor &tensor, const std::string &name) {
  c10::ScalarType dtype = getDtype(tensor);
  MlirType element = types.getElement(dtype);
  Layout layout = getLayout(tensor);
  size_t itemSize = tensor.itemsize();
  uint64_t size = layout.count * itemSize;
  bool isComplex = tensor.is_complex();
  bool isBool = dtype == c10::ScalarType::Bool;
  bool isChanged = isConjugate(tensor) || isNegative(tensor);
  MlirContext context = types.getContext();

  // MLIR's Python bindings have no class for dense<…> of complex numbers.
  MlirType type = getRankedTensor(layout.sizes, element);
  if (layout.count == 0 && !isComplex)
    return {mlirDenseElementsAttrRawBufferGet(type, 0, nullptr), false};
  if (isOneElement(layout) && !isChanged) {
    if (isBool)
      return {mlirDenseElementsAttrBoolSplatGet(type, *layout.data != 0), false};
    // One element is a splat, which consumers fold; resource blobs have none. What is expanded
    // from one element takes no memory this way either.
    if (!isComplex)
      return {mlirDenseElementsAttrRawBufferGet(type, itemSize, layout.data), false};
  }
  if (isBool) {
    // MLIR packs bits of i1 in ways that differ between its versions.
    if (isContiguous(layout)) {
      bool first = *layout.data != 0;
      uint64_t i = 1;
      while (i < layout.count && (layout.data[i] != 0) == first)
        ++i;
      if (i == layout.count)
        return {mlirDenseElementsAttrBoolSplatGet(type, first), false};
    }
    type = getRankedTensor(layout.sizes, mlirIntegerTypeUnsignedGet(context, 8));
  }

  bool isInPlace = isContiguous(layout) && !isChanged;
  if (isInPlace) {
    auto found = blobs.find(std::make_tuple(static_cast<const void *>(layout.data), size, dtype));
    if (found != blobs.end()) {
      MlirAttribute blob = torchMlirDenseResourceElementsAttrGetAs(found->second, type);
      if (!mlirAttributeIsNull(blob))
        return {blob, isBool};
    }
  }
  std::unique_ptr<char, void (*)(void *)> copy(nullptr, std::free);
  if (!isInPlace) {
    copied += size;
    if (copied > maxCopied)
      throw Unsupported("tensors that don't lie in their storage as they read would take more "
                        "than " + std::to_string(maxCopied) + " bytes (an expanded or strided "
                        "tensor is written out in full)");
    copy.reset(static_cast<char *>(std::malloc(std::max<size_t>(size, 1))));
    if (!copy)
      throw std::bad_alloc();
    copyElements(layout, itemSize, copy.get());
    if (isConjugate(tensor))
      negate(copy.get(), size, getPartSize(tensor), 1, 2);
    if (isNegative(tensor))
      negate(copy.get(), size, getPartSize(tensor), 0, 1);
  }
  const char *data = isInPlace ? layout.data : copy.get();
  // IREE moves the contents of at most 256 bytes into kernels that compute in another float
  // type; where a CPU has no bf16 they convert to f32, which reads dense<…> only.
  if (dtype == c10::ScalarType::BFloat16 && size <= 256)
    return {mlirDenseElementsAttrRawBufferGet(type, size, data), false};
  if (isInPlace) {
    auto *storage = new at::Storage(tensor.storage());
    auto release = [](void *storage, const void *, size_t, size_t) {
      delete static_cast<at::Storage *>(storage);
    };
    return {getBlob(data, size, getPartSize(tensor), type, dtype, name, storage, release), isBool};
  }
  auto release = [](void *copy, const void *, size_t, size_t) { std::free(copy); };
  void *owner = copy.release();
  return {getBlob(data, size, getPartSize(tensor), type, dtype, name, owner, release), isBool};
}

MlirValue Literals::create(Builder &builder, const at::Tensor &tensor, const std::string &name,
                           MlirLocation location) {
  if (!tensor.defined())
    throw Unsupported("a tensor that holds nothing, not even a shape");
  if (tensor.layout() != c10::kStrided) {
    std::ostringstream text;
    text << "a tensor of layout " << tensor.layout() << ", whose data is not imported";
    throw Unsupported(text.str());
  }
  if (const Quantization *quantization = getQuantization(tensor))
    return createQuantized(builder, tensor, *quantization, name, location);
  if (tensor.device().is_meta() || !tensor.has_storage())
    throw Unsupported("a tensor that holds no data");
  Contents contents = getContents(tensor, name);
  MlirContext context = types.getContext();
  bool isValue = types.hasValueTensors();
  const char *operation = isValue ? "torch.vtensor.literal" : "torch.tensor.literal";
  MlirType element = types.getElement(getDtype(tensor));
  MlirType stored = contents.areWidenedBools ? mlirIntegerTypeUnsignedGet(context, 8) : element;
  MlirValue literal =
      builder.value(operation, location, types.getTensor(tensor.sizes(), stored), {},
                    {{"value", contents.elements}});
  if (!contents.areWidenedBools)
    return literal;
  MlirValue dtype = builder.value(
      "torch.constant.int", location, torchMlirTorchIntTypeGet(context), {},
      {{"value", builder.i64(static_cast<int64_t>(c10::ScalarType::Bool))}});
  return builder.value("torch.prims.convert_element_type", location,
                       types.getTensor(tensor.sizes(), element), {literal, dtype});
}

MlirValue Literals::createQuantized(Builder &builder, const at::Tensor &tensor,
                                    const Quantization &quantization, const std::string &name,
                                    MlirLocation location) {
  MlirContext context = types.getContext();
  switch (tensor.scalar_type()) {
  case c10::ScalarType::QInt8:
  case c10::ScalarType::QUInt8:
  case c10::ScalarType::QInt32:
    break;
  default:
    throw Unsupported(std::string("a quantised tensor of dtype ") +
                      c10::toString(tensor.scalar_type()) + ", of less than a byte an element");
  }
  MlirType result = types.getTensor(tensor.sizes(), types.getElement(tensor.scalar_type()));
  MlirValue integers = create(builder, getIntegers(tensor), name, location);
  auto constantInt = [&](int64_t number) {
    return builder.value("torch.constant.int", location, torchMlirTorchIntTypeGet(context), {},
                         {{"value", builder.i64(number)}});
  };
  if (quantization.scheme == c10::kPerTensorAffine) {
    MlirValue scale = builder.value(
        "torch.constant.float", location, torchMlirTorchFloatTypeGet(context), {},
        {{"value",
          mlirFloatAttrDoubleGet(context, mlirF64TypeGet(context), quantization.scale)}});
    return builder.value("torch.per_tensor_affine.create", location, result,
                         {integers, scale, constantInt(quantization.zeroPoint)});
  }
  MlirValue scales = create(builder, quantization.scales, name + ".scales", location);
  MlirValue zeroPoints = create(builder, quantization.zeroPoints, name + ".zero_points", location);
  return builder.value("torch.aten._make_per_channel_quantized_tensor", location, result,
                       {integers, scales, zeroPoints, constantInt(quantization.axis)});
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Containers and objects inside of one another.
static constexpr unsigned maxValueDepth = 1024;

Values::Values(Builder &builder, Types &types, Literals &literals, bool objects,
               const SharedMemory *shared)
    : builder(builder), types(types), literals(literals), objects(objects), shared(shared) {}

/// What a value may be told apart by, null where it can't be reached twice.
static const void *getIdentity(const IValue &value) {
  if (value.isTensor())
    return value.toTensor().unsafeGetTensorImpl();
  // All kinds of lists are one class.
  if (value.isList() || value.isGenericDict() || value.isTuple() || value.isObject())
    return value.internalToPointer();
  return nullptr;
}

MlirValue Values::get(const IValue &value, const TypePtr &type, const std::string &path,
                      MlirLocation location) {
  const void *identity = getIdentity(value);
  if (!identity)
    return make(value, type, path, location);
  auto [entry, isNew] = made.try_emplace(identity, MlirValue{nullptr});
  if (!isNew) {
    if (mlirValueIsNull(entry->second))
      throw Unsupported("'" + path + "' is an object that holds itself");
    return fit(entry->second, types.get(type), location);
  }
  if (++depth > maxValueDepth)
    throw Unsupported("'" + path + "' lies in more than " + std::to_string(maxValueDepth) +
                      " containers and objects");
  MlirValue result = make(value, type, path, location);
  --depth;
  made[identity] = result;
  return fit(result, types.get(type), location);
}

MlirValue Values::fit(MlirValue value, MlirType type, MlirLocation location) {
  if (torchMlirTorchTypeIsSubtype(mlirValueGetType(value), type))
    return value;
  return builder.convert(value, type, location);
}

/// The type of a container: where it stands tells more than the container itself does.
template <typename Container>
static std::shared_ptr<Container> getContainerType(const IValue &value, const TypePtr &type) {
  TypePtr known = type;
  while (auto optional = known->template cast<c10::OptionalType>())
    known = optional->getElementType();
  if (auto container = known->template cast<Container>())
    return container;
  return value.type()->template cast<Container>();
}

MlirValue Values::make(const IValue &value, const TypePtr &type, const std::string &path,
                       MlirLocation location) {
  MlirContext context = types.getContext();
  auto constant = [&](const char *kind, MlirType result, MlirAttribute attribute) {
    return builder.value(std::string("torch.constant.") + kind, location, result, {},
                         {{"value", attribute}});
  };
  if (value.isNone())
    return builder.value("torch.constant.none", location, torchMlirTorchNoneTypeGet(context));
  if (value.isTensor())
    return makeTensor(value.toTensor(), path, location);
  if (value.isBool())
    return constant("bool", torchMlirTorchBoolTypeGet(context),
                    mlirIntegerAttrGet(mlirIntegerTypeGet(context, 1), value.toBool()));
  if (value.isInt())
    return constant("int", torchMlirTorchIntTypeGet(context), builder.i64(value.toInt()));
  if (value.isDouble())
    return constant("float", torchMlirTorchFloatTypeGet(context),
                    mlirFloatAttrDoubleGet(context, mlirF64TypeGet(context), value.toDouble()));
  if (value.isComplexDouble()) {
    // The dialect has no constant for it.
    auto number = value.toComplexDouble();
    std::vector<MlirValue> parts;
    for (double part : {number.real(), number.imag()})
      parts.push_back(
          constant("float", torchMlirTorchFloatTypeGet(context),
                   mlirFloatAttrDoubleGet(context, mlirF64TypeGet(context), part)));
    return builder.value("torch.aten.Complex.float_float", location,
                         torchMlirTorchNumberTypeGet(context), parts);
  }
  if (value.isString())
    return constant("str", torchMlirTorchStringTypeGet(context),
                    builder.string(value.toStringRef()));
  if (value.isDevice())
    return constant("device", torchMlirTorchDeviceTypeGet(context),
                    builder.string(value.toDevice().str()));
  if (value.isList()) {
    auto list = getContainerType<c10::ListType>(value, type);
    MlirType element = types.get(list->getElementType());
    std::vector<MlirValue> elements;
    size_t i = 0;
    for (const IValue &item : value.toListRef()) {
      std::string name = path + "." + std::to_string(i++);
      elements.push_back(fit(get(item, list->getElementType(), name, location), element, location));
    }
    return builder.value("torch.prim.ListConstruct", location, types.get(list), elements);
  }
  if (value.isTuple()) {
    auto tuple = getContainerType<c10::TupleType>(value, type);
    const auto &items = value.toTupleRef().elements();
    std::vector<MlirValue> elements;
    for (size_t i = 0; i < items.size(); ++i) {
      const TypePtr &element = tuple->elements().at(i);
      std::string name = path + "." + std::to_string(i);
      elements.push_back(
          fit(get(items[i], element, name, location), types.get(element), location));
    }
    return builder.value("torch.prim.TupleConstruct", location, types.get(tuple), elements);
  }
  if (value.isGenericDict()) {
    auto dict = getContainerType<c10::DictType>(value, type);
    MlirType key = types.get(dict->getKeyType());
    MlirType item = types.get(dict->getValueType());
    std::vector<MlirValue> keys, items;
    size_t i = 0;
    for (const auto &entry : value.toGenericDict()) {
      std::string name = path + "." + (entry.key().isString() ? entry.key().toStringRef()
                                                              : std::to_string(i));
      ++i;
      keys.push_back(fit(get(entry.key(), dict->getKeyType(), name, location), key, location));
      items.push_back(fit(get(entry.value(), dict->getValueType(), name, location), item, location));
    }
    keys.insert(keys.end(), items.begin(), items.end());
    return builder.value("torch.prim.DictConstruct", location, types.get(dict), keys);
  }
  if (value.isEnum())
    return makeEnum(value, path, location);
  if (value.isObject())
    return makeObject(value, path, location);
  throw Unsupported("'" + path + "' is a value of type " + value.type()->repr_str() +
                    ", which is not supported");
}

MlirValue Values::makeTensor(const at::Tensor &tensor, const std::string &path,
                             MlirLocation location) {
  const Alias *alias = shared ? shared->find(tensor) : nullptr;
  std::vector<Alias::Step> steps;
  try {
    if (!alias)
      return literals.create(builder, tensor, path, location);
    steps = alias->getSteps(builder, location);
  } catch (const Unsupported &problem) {
    throw Unsupported("'" + path + "' is " + problem.what());
  }
  MlirValue made = get(IValue(alias->memory), c10::TensorType::get(), path, location);
  MlirType last = types.getTensor(tensor.sizes(), types.getElement(literals.getDtype(tensor)));
  for (size_t i = 0; i < steps.size(); ++i) {
    auto &[operation, operands] = steps[i];
    operands.insert(operands.begin(), made);
    made = builder.value(operation, location, i + 1 < steps.size() ? types.getTensor() : last,
                         operands);
  }
  return made;
}

MlirValue Values::makeModule(MlirType type,
                             const std::vector<std::pair<std::string, MlirValue>> &slots,
                             MlirLocation location) {
  MlirRegion region = mlirRegionCreate();
  MlirBlock block = mlirBlockCreate(0, nullptr, nullptr);
  mlirRegionAppendOwnedBlock(region, block);
  Builder inner(types.getContext(), block);
  for (const auto &[name, value] : slots)
    inner.create("torch.slot", location, {}, {value}, {{"name", inner.string(name)}});
  inner.create("torch.nn_module_terminator", location, {}, {});
  MlirOperation made = builder.create("torch.nn_module", location, {type}, {}, {}, {region});
  return mlirOperationGetResult(made, 0);
}

MlirValue Values::makeObject(const IValue &value, const std::string &path, MlirLocation location) {
  auto object = value.toObject();
  auto type = object->type();
  std::string name = getName(*type);
  if (isCustomClass(*type)) {
    auto packing = getPacking(value);
    if (!packing)
      throw Unsupported("'" + path + "' is an object of the custom C++ class '" + name +
                        "', which has no form in the Torch dialect");
    std::vector<MlirValue> operands;
    for (const auto &[operand, part] : packing->operands) {
      // An address means nothing once what was there is gone.
      kept.push_back(part);
      operands.push_back(get(part, part.type(), path + "." + operand, location));
    }
    return builder.value(packing->operation, location, types.get(type), operands);
  }
  if (!objects)
    throw Unsupported("'" + path + "' is a constant object of class '" + name + "'");
  MlirType result = types.get(type);
  std::vector<std::pair<std::string, MlirValue>> slots;
  for (size_t i = 0; i < type->numAttributes(); ++i) {
    const std::string &attribute = type->getAttributeName(i);
    std::string inner = path.empty() ? attribute : path + "." + attribute;
    const IValue &slot = object->getSlot(i);
    const TypePtr &slotType = type->getAttribute(i);
    slots.emplace_back(attribute, fit(get(slot, slotType, inner, location), types.get(slotType),
                                      location));
  }
  return makeModule(result, slots, location);
}

MlirValue Values::makeEnum(const IValue &value, const std::string &path, MlirLocation location) {
  auto holder = value.toEnumHolder();
  auto [entry, isNew] =
      enums.try_emplace({holder->qualifiedClassName(), holder->name()}, MlirValue{nullptr});
  if (!isNew)
    return entry->second;
  MlirType type = types.get(holder->type());
  const TypePtr &inner = holder->type()->getValueType();
  MlirValue name = get(IValue(holder->name()), c10::StringType::get(), path, location);
  MlirValue held = get(holder->value(), inner, path, location);
  if (objects)
    return entry->second = makeModule(type, {{"name", name}, {"value", held}}, location);
  MlirValue made = builder.value("torch.prim.CreateObject", location, type);
  for (auto [attribute, set] : {std::make_pair("name", name), std::make_pair("value", held)})
    builder.create("torch.prim.SetAttr", location, {}, {made, set},
                   {{"name", builder.string(attribute)}});
  return entry->second = made;
}

} // namespace torch_mlir::torchscript

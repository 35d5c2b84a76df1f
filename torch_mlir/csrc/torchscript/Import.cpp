// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an archive to a module.

#include "torchscript/Import.h"

#include "torchscript/Builder.h"
#include "torchscript/DeepStack.h"
#include "torchscript/Diagnostics.h"
#include "torchscript/Functions.h"
#include "torchscript/Load.h"
#include "torchscript/Locations.h"
#include "torchscript/Pool.h"
#include "torchscript/Schemas.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"
#include "torchscript/Versions.h"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/error_report.h>

#include <exception>
#include <mutex>
#include <utility>

#include <pthread.h>

namespace torch_mlir::torchscript {

namespace {

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

torch::jit::Module load(const std::shared_ptr<Archive> &archive, const std::string &row,
                        const std::vector<std::string> &schemas) {
  selectSchemas(row, schemas);
  return loadArchive(archive);
}

/// Loads with the operators of the newest row that has all that the archive calls.
torch::jit::Module loadAsNewest(const std::shared_ptr<Archive> &archive,
                                const std::vector<std::string> &schemas) {
  const std::vector<std::string> &rows = schemaRows();
  std::exception_ptr problem;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    try {
      return load(archive, *row, schemas);
    } catch (const torch::jit::ErrorReport &) {
      // What the newest says is told.
      if (!problem)
        problem = std::current_exception();
    }
  }
  std::rethrow_exception(problem);
}

/// The root's class, without the names around it.
std::string getModelName(const torch::jit::Module &model) {
  std::string name = getName(*model.type());
  return name.substr(name.rfind('.') + 1);
}

void importModel(MlirContext context, MlirModule module, const torch::jit::Module &model,
                 const Options &options, const Archive &archive, Report &report) {
  Locations locations(context);
  Types types(context, /*valueTensors=*/options.mode == Mode::Torch);
  Literals literals(types, archive.limits().expandedTensorBytes,
                    [&](const void *storage) { return archive.getDtype(storage); });
  MlirBlock body = mlirModuleGetBody(module);
  if (options.mode == Mode::Torch)
    return importMethods(context, body, model, options.pipeline, types, literals, locations,
                         report);
  Functions functions(context, body, types, literals, locations);
  Builder builder(context, body);
  SharedMemory shared(model._ivalue());
  Values values(builder, types, literals, /*objects=*/true, &shared);
  values.get(model._ivalue(), model.type(), "", locations.unknown());
  functions.importAll();
}

/// What a thread with room for it does.
MlirModule importHere(MlirContext context, const std::shared_ptr<Archive> &archive,
                      const std::string &name, const Options &options,
                      Report &report) {
  Diagnostics diagnostics(context);
  IgnoredWarnings ignored;
  try {
    torch::jit::Module model =
        options.row.empty() ? loadAsNewest(archive, options.schemas)
                            : load(archive, options.row, options.schemas);
    OwnedModule module(mlirLocationUnknownGet(context));
    Builder builder(context, mlirModuleGetBody(module.get()));
    mlirOperationSetAttributeByName(
        mlirModuleGetOperation(module.get()),
        mlirStringRefCreateFromCString("torch.debug_module_name"),
        builder.string(getModelName(model)));
    importModel(context, module.get(), model, options, *archive, report);
    diagnostics.clear();
    if (!mlirOperationVerify(mlirModuleGetOperation(module.get())))
      throw ImportError("the module that was made isn't valid: " + diagnostics.getText());
    archive->checkUnchanged();
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

} // namespace

std::mutex &getImportMutex() {
  static std::mutex *mutex = [] {
    static auto *made = new std::mutex();
    pthread_atfork([] { made->lock(); }, [] { made->unlock(); }, [] { made->unlock(); });
    return made;
  }();
  return *mutex;
}

MlirModule importArchive(MlirContext context, const std::shared_ptr<Archive> &archive,
                         const std::string &name, const Options &options,
                         Report &report) {
  std::lock_guard<std::mutex> lock(getImportMutex());
  MlirModule module{nullptr};
  onDeepStack([&] {
    PoolScope pool;
    module = importHere(context, archive, name, options, report);
  });
  return module;
}

std::vector<std::string> getSchemas(const std::string &row) {
  std::lock_guard<std::mutex> lock(getImportMutex());
  selectSchemas(row);
  return registeredSchemas();
}

} // namespace torch_mlir::torchscript

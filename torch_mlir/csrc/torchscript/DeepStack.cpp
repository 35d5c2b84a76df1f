// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeepStack.h"

#include <cstddef>
#include <exception>

#include <pthread.h>

namespace torch_mlir::torchscript {
namespace {

/// Only what is used of it takes memory.
constexpr std::size_t stackSize = std::size_t(64) << 20;

struct Work {
  const std::function<void()> &run;
  std::exception_ptr thrown;
};

void *runWork(void *data) {
  auto *work = static_cast<Work *>(data);
  try {
    work->run();
  } catch (...) {
    work->thrown = std::current_exception();
  }
  return nullptr;
}

} // namespace

void onDeepStack(const std::function<void()> &work) {
  Work shared{work, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  bool started = false;
  if (pthread_attr_init(&attributes) == 0) {
    started = pthread_attr_setstacksize(&attributes, stackSize) == 0 &&
              pthread_create(&thread, &attributes, runWork, &shared) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (!started)
    return work();
  pthread_join(thread, nullptr);
  if (shared.thrown)
    std::rethrow_exception(shared.thrown);
}

} // namespace torch_mlir::torchscript

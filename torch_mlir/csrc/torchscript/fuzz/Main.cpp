// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fuzzer for compilers without libFuzzer: processes run changed seeds one after the other, and
// the input of one that dies, takes too long or needs too much memory is kept.
//
//   fuzz SEEDS FINDINGS EXECUTIONS [FIRST [SECONDS]]   changed copies of the files in a folder
//   fuzz FILE...                                       these files, as they are
//
// Execution `n` is the same in every run with the same seeds. Prints one line at the end, and
// exits with 1 if anything was found.

#include "Mutator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace {

using torch_mlir::torchscript::fuzz::mutate;
using torch_mlir::torchscript::fuzz::Random;

constexpr unsigned secondsEach = 30;
constexpr long mostKilobytes = 1L << 20; // of memory that a process gains
constexpr std::uint64_t perProcess = 2000;

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

long kilobytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

int run(const std::string &input) {
  // In memory of its own size, so that reading beyond it shows.
  std::vector<std::uint8_t> bytes(input.begin(), input.end());
  bytes.shrink_to_fit();
  return LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

} // namespace

int main(int count, char **arguments) {
  namespace fs = std::filesystem;
  if (count < 2)
    return 2;
  if (!fs::is_directory(arguments[1])) {
    for (int i = 1; i < count; ++i) {
      std::printf("%s\n", arguments[i]);
      std::fflush(stdout);
      run(readFile(arguments[i]));
    }
    return 0;
  }
  if (count < 4)
    return 2;
  std::vector<fs::path> paths;
  for (const auto &entry : fs::directory_iterator(arguments[1]))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const fs::path &path : paths)
    seeds.push_back(readFile(path));
  if (seeds.empty())
    return 2;
  fs::path findings = arguments[2];
  std::uint64_t executions = std::strtoull(arguments[3], nullptr, 10);
  std::uint64_t first = count > 4 ? std::strtoull(arguments[4], nullptr, 10) : 0;
  std::uint64_t seconds = count > 5 ? std::strtoull(arguments[5], nullptr, 10) : 1000000000;
  fs::create_directories(findings);

  // Which execution a process is at.
  auto *at = static_cast<volatile std::uint64_t *>(mmap(
      nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto input = [&](std::uint64_t n) {
    Random random(n * UINT64_C(0x9e3779b97f4a7c15) + 1);
    return mutate(seeds[random() % seeds.size()], seeds, random);
  };
  auto start = std::chrono::steady_clock::now();
  std::uint64_t found = 0, done = 0;
  std::uint64_t next = first;
  while (next < first + executions &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(seconds)) {
    std::uint64_t end = std::min(first + executions, next + perProcess);
    *at = next;
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      // TorchScript may print.
      if (!std::freopen("/dev/null", "w", stdout))
        _exit(2);
      long before = kilobytes();
      for (std::uint64_t n = next; n < end; ++n) {
        *at = n;
        std::string bytes = input(n);
        alarm(secondsEach);
        run(bytes);
        alarm(0);
        if (kilobytes() - before > mostKilobytes)
          _exit(77);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      done += end - next;
      next = end;
      continue;
    }
    std::uint64_t culprit = *at;
    const char *what = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "time"
                       : WIFEXITED(status) && WEXITSTATUS(status) == 77   ? "memory"
                                                                          : "crash";
    fs::path kept = findings / (std::string(what) + "-" + std::to_string(culprit));
    std::string bytes = input(culprit);
    std::ofstream(kept, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::printf("%s: signal %d, exit %d\n", kept.c_str(),
                WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    ++found;
    done += culprit + 1 - next;
    next = culprit + 1;
  }
  std::printf("%llu executions of %zu seeds, %llu findings, %.0f seconds\n",
              static_cast<unsigned long long>(done), seeds.size(),
              static_cast<unsigned long long>(found),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return found ? 1 : 0;
}

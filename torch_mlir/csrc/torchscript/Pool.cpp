// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chunks are of slabs, slabs of pieces of one size. Which chunk and slab a piece lies in follows
// from its address. What other threads give back, or what is given back between two imports,
// waits in a list for the next import.

#include "torchscript/Pool.h"

#include <atomic>
#include <cstdint>

#include <pthread.h>
#include <sys/mman.h>

#if defined(__has_feature)
#define TORCH_MLIR_HAS_FEATURE(name) __has_feature(name)
#else
#define TORCH_MLIR_HAS_FEATURE(name) 0
#endif

namespace torch_mlir::torchscript {
namespace {

// Sanitizers want to see each piece.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    TORCH_MLIR_HAS_FEATURE(address_sanitizer) || TORCH_MLIR_HAS_FEATURE(thread_sanitizer) ||       \
    TORCH_MLIR_HAS_FEATURE(memory_sanitizer)
constexpr bool isUsed = false;
#else
constexpr bool isUsed = sizeof(void *) == 8;
#endif

constexpr std::size_t unit = 16; // what operator new aligns to
constexpr std::size_t largest = 1024;
constexpr unsigned slabBits = 16, chunkBits = 22, addressBits = 48;
constexpr std::size_t slabSize = std::size_t(1) << slabBits;
constexpr std::size_t chunkSize = std::size_t(1) << chunkBits;
constexpr std::size_t slabsPerChunk = chunkSize / slabSize;
constexpr int keptSlabs = 32;
static_assert(alignof(std::max_align_t) <= unit);

struct Piece {
  Piece *next;
};

struct Slab {
  /// Slabs of its size that have room.
  Slab *next, *previous;
  Piece *pieces;
  /// Where what was never taken begins.
  char *fresh;
  std::uint32_t pieceSize;
  std::uint32_t live;
  bool isListed;
};

/// Lies at the beginning of its first slab, which holds nothing else.
struct Chunk {
  Chunk *next, *previous;
  /// By slab: without a piece, and of these, those whose pages may have been touched.
  std::uint64_t free, touched;
  Slab slabs[slabsPerChunk];
};
static_assert(slabsPerChunk == 64 && sizeof(Chunk) <= slabSize);
constexpr std::uint64_t allSlabs = ~std::uint64_t(1);

/// Doubly linked, by the members `next` and `previous`.
template <typename Item> struct List {
  Item *first = nullptr;

  void push(Item *item) {
    item->previous = nullptr;
    item->next = first;
    if (first)
      first->previous = item;
    first = item;
  }
  /// As the second, so that the first is used up.
  void pushSecond(Item *item) {
    if (!first)
      return push(item);
    item->previous = first;
    item->next = first->next;
    if (item->next)
      item->next->previous = item;
    first->next = item;
  }
  void remove(Item *item) {
    (item->previous ? item->previous->next : first) = item->next;
    if (item->next)
      item->next->previous = item->previous;
  }
};

/// The thread whose the pool is; 0 between imports.
std::atomic<std::uintptr_t> owner{0};
/// What waits for the next import.
std::atomic<Piece *> returned{nullptr};
/// A bit for each chunk that there may be. Only what is in use of it takes memory.
std::atomic<std::uint64_t> chunkMap[std::size_t(1) << (addressBits - chunkBits - 6)];

// The owner's.
List<Slab> bySize[largest / unit];
List<Chunk> withRoom;
List<Chunk> full;

bool isOwner() {
  return owner.load(std::memory_order_relaxed) == (std::uintptr_t)pthread_self();
}

bool isPools(const void *piece) {
  auto number = reinterpret_cast<std::uintptr_t>(piece) >> chunkBits;
  return number >> (addressBits - chunkBits) == 0 &&
         (chunkMap[number / 64].load(std::memory_order_relaxed) >> (number % 64) & 1);
}

void note(const Chunk *chunk) {
  auto number = reinterpret_cast<std::uintptr_t>(chunk) >> chunkBits;
  chunkMap[number / 64].fetch_xor(std::uint64_t(1) << (number % 64), std::memory_order_relaxed);
}

Chunk *chunkOf(void *inside) {
  return reinterpret_cast<Chunk *>(reinterpret_cast<std::uintptr_t>(inside) & ~(chunkSize - 1));
}

Chunk *makeChunk() {
  void *mapped = mmap(nullptr, 2 * chunkSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  char *begin = static_cast<char *>(mapped);
  char *aligned = reinterpret_cast<char *>(chunkOf(begin + chunkSize - 1));
  if (aligned != begin)
    munmap(begin, aligned - begin);
  munmap(aligned + chunkSize, begin + chunkSize - aligned);
  if (reinterpret_cast<std::uintptr_t>(aligned) >> addressBits) {
    munmap(aligned, chunkSize);
    return nullptr;
  }
  // Else a tenth of a short import is faults. Where the system has no such pages, nothing changes.
  madvise(aligned, chunkSize, MADV_HUGEPAGE);
  auto *chunk = reinterpret_cast<Chunk *>(aligned); // all zero
  chunk->free = allSlabs;
  note(chunk);
  withRoom.push(chunk);
  return chunk;
}

Slab *makeSlab(std::size_t pieceSize) {
  Chunk *chunk = withRoom.first ? withRoom.first : makeChunk();
  if (!chunk)
    return nullptr;
  auto number = static_cast<unsigned>(__builtin_ctzll(chunk->free));
  std::uint64_t bit = std::uint64_t(1) << number;
  chunk->free &= ~bit;
  chunk->touched |= bit;
  if (!chunk->free) {
    withRoom.remove(chunk);
    full.push(chunk);
  }
  Slab *slab = &chunk->slabs[number];
  slab->pieces = nullptr;
  slab->fresh = reinterpret_cast<char *>(chunk) + number * slabSize;
  slab->pieceSize = static_cast<std::uint32_t>(pieceSize);
  slab->live = 0;
  slab->isListed = true;
  bySize[pieceSize / unit - 1].push(slab);
  return slab;
}

/// Any size may have it next.
void dropSlab(Chunk *chunk, std::size_t number) {
  if (!chunk->free) {
    full.remove(chunk);
    withRoom.push(chunk);
  }
  chunk->free |= std::uint64_t(1) << number;
}

void give(void *memory) {
  auto *piece = static_cast<Piece *>(memory);
  Chunk *chunk = chunkOf(memory);
  std::size_t number = (reinterpret_cast<std::uintptr_t>(memory) >> slabBits) % slabsPerChunk;
  Slab *slab = &chunk->slabs[number];
  piece->next = slab->pieces;
  slab->pieces = piece;
  List<Slab> &list = bySize[slab->pieceSize / unit - 1];
  if (!slab->isListed) {
    slab->isListed = true;
    list.pushSecond(slab);
  }
  if (--slab->live == 0 && list.first != slab) {
    list.remove(slab);
    dropSlab(chunk, number);
  }
}

void giveReturned() {
  Piece *piece = returned.exchange(nullptr, std::memory_order_acquire);
  while (piece) {
    Piece *next = piece->next;
    give(piece);
    piece = next;
  }
}

/// Gives the system the pages of slabs without a piece, save for those that a small import needs.
void trim() {
  int kept = keptSlabs;
  for (List<Slab> &list : bySize)
    if (Slab *slab = list.first; slab && slab->live == 0) {
      list.remove(slab);
      Chunk *chunk = chunkOf(slab);
      dropSlab(chunk, slab - chunk->slabs);
    }
  for (Chunk *chunk = withRoom.first, *next; chunk; chunk = next) {
    next = chunk->next;
    std::uint64_t pages = chunk->free & chunk->touched;
    if (int count = __builtin_popcountll(pages); count <= kept) {
      kept -= count;
      continue;
    }
    if (chunk->free == allSlabs) {
      withRoom.remove(chunk);
      note(chunk);
      munmap(chunk, chunkSize);
      continue;
    }
    chunk->touched &= ~pages;
    for (std::size_t begin = 0, end; begin < slabsPerChunk; begin = end) {
      bool isDropped = pages >> begin & 1;
      for (end = begin + 1; end < slabsPerChunk && (pages >> end & 1) == isDropped;)
        ++end;
      if (isDropped)
        madvise(reinterpret_cast<char *>(chunk) + begin * slabSize, (end - begin) * slabSize,
                MADV_DONTNEED);
    }
  }
}

} // namespace

PoolScope::PoolScope() {
  if (!isUsed)
    return;
  giveReturned();
  owner.store((std::uintptr_t)pthread_self(), std::memory_order_relaxed);
}

PoolScope::~PoolScope() {
  if (!isUsed)
    return;
  owner.store(0, std::memory_order_relaxed);
  giveReturned();
  trim();
}

void *takeFromPool(std::size_t size) noexcept {
  if (!isUsed || size > largest || !isOwner())
    return nullptr;
  std::size_t pieceSize = size ? (size + unit - 1) / unit * unit : unit;
  List<Slab> &list = bySize[pieceSize / unit - 1];
  for (;;) {
    Slab *slab = list.first;
    if (!slab && !(slab = makeSlab(pieceSize)))
      return nullptr;
    if (Piece *piece = slab->pieces) {
      slab->pieces = piece->next;
      ++slab->live;
      return piece;
    }
    char *piece = slab->fresh;
    // A slab's end is the next one's beginning, and the chunk's end its own.
    std::size_t used = reinterpret_cast<std::uintptr_t>(piece) % slabSize;
    if (!used && slab->live)
      used = slabSize;
    if (used + pieceSize <= slabSize) {
      slab->fresh += pieceSize;
      ++slab->live;
      return piece;
    }
    slab->isListed = false;
    list.remove(slab);
  }
}

bool giveToPool(void *memory) noexcept {
  if (!isUsed || !isPools(memory))
    return false;
  if (isOwner()) {
    give(memory);
    return true;
  }
  auto *piece = static_cast<Piece *>(memory);
  piece->next = returned.load(std::memory_order_relaxed);
  while (!returned.compare_exchange_weak(piece->next, piece, std::memory_order_release,
                                         std::memory_order_relaxed))
    ;
  return true;
}

} // namespace torch_mlir::torchscript

// Inline PTX: translate.py makes calls of RunPtx from asm statements.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <source_location>
#include <string_view>
#include <type_traits>

namespace gpu_emulator {

// An operand of an asm statement: the bits of an input, or where an output is.
struct Operand {
  uint64_t bits = 0;
  void* place = nullptr;

  template <class T>
  T as() const {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    T value{};
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
};

template <class T>
Operand In(const T& value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  Operand operand;
  std::memcpy(&operand.bits, &value, sizeof(T));
  return operand;
}
template <class T>
Operand Out(T& value) {
  return {.bits = 0, .place = &value};
}

// What an asm statement does, found by its text; the program fails if there is none (ptx.cc).
struct Instruction;
const Instruction& FindInstruction(std::string_view text);
void RunInstruction(const Instruction& instruction, std::initializer_list<Operand> operands,
                    const std::source_location& where);

// `text` is a function of its own for each asm statement, whose instruction is searched for once.
template <class Text>
void RunPtx(Text text, std::initializer_list<Operand> operands = {},
            const std::source_location& where = std::source_location::current()) {
  static const Instruction& instruction = FindInstruction(text());
  RunInstruction(instruction, operands, where);
}

}  // namespace gpu_emulator

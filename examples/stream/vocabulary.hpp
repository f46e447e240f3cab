// The tokens of a text: bytes, and what was made of frequent neighbors (byte pair encoding: Sennrich, Haddow
// and Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016). As it is in flash: no
// heap.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace stream {

struct Token {
  static constexpr int kLongest = 15;
  unsigned char length;
  char bytes[kLongest];

  [[nodiscard]] std::string_view text() const { return {bytes, length}; }
};
static_assert(sizeof(Token) == 16);

inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// How many bytes of a text, which has some, no token goes beyond: a word, or one byte that is of none, with
/// the space before it.
inline std::size_t piece_length(std::string_view text) {
  const std::size_t first = text[0] == ' ' && text.size() > 1 && text[1] != ' ' ? 1 : 0;
  std::size_t end = first;
  while (end < text.size() && is_letter(text[end])) ++end;
  return std::max(end, first + 1);
}

/// Tokens in the order in which they were made; the number of one is its id.
struct Vocabulary {
  std::span<const Token> tokens;

  /// The id of what two texts are together; -1 without one.
  [[nodiscard]] int id_of(std::string_view left, std::string_view right = {}) const {
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      const std::string_view text = tokens[id].text();
      if (text.size() == left.size() + right.size() && std::string_view(text.data(), left.size()) == left &&
          text.ends_with(right)) {
        return static_cast<int>(id);
      }
    }
    return -1;
  }

  /// Writes the ids of a piece to ids[piece.size()] and says how many there are; -1 if a byte has no token.
  /// Of the neighbors that are a token together, those become one that did so first when the vocabulary was
  /// made.
  int encode_piece(std::string_view piece, int* ids) const {
    const auto size = static_cast<int>(piece.size());
    for (int i = 0; i < size; ++i) {
      ids[i] = id_of({piece.data() + i, 1});
      if (ids[i] < 0) return -1;
    }
    int count = size;
    for (;;) {
      int first = -1;
      for (int i = 0; i + 1 < count; ++i) {
        const int id = together(ids[i], ids[i + 1]);
        if (id >= 0 && (first < 0 || id < first)) first = id;
      }
      if (first < 0) return count;
      int kept = 0;
      for (int i = 0; i < count; ++kept) {
        const bool merged = i + 1 < count && together(ids[i], ids[i + 1]) == first;
        ids[kept] = merged ? first : ids[i];
        i += merged ? 2 : 1;
      }
      count = kept;
    }
  }

  /// The same of a text, to ids[text.size()].
  int encode(std::string_view text, int* ids) const {
    int count = 0;
    while (!text.empty()) {
      const std::size_t length = piece_length(text);
      const int more = encode_piece({text.data(), length}, ids + count);
      if (more < 0) return -1;
      count += more;
      text.remove_prefix(length);
    }
    return count;
  }

 private:
  [[nodiscard]] int together(int left, int right) const {
    return id_of(tokens[static_cast<std::size_t>(left)].text(),
                 tokens[static_cast<std::size_t>(right)].text());
  }
};

}  // namespace stream

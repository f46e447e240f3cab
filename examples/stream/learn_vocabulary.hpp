// Learns a vocabulary from a text, on a PC.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "vocabulary.hpp"

namespace stream {

namespace detail {

/// A piece of the text, how often it comes, and its tokens so far.
struct CountedPiece {
  std::int64_t count;
  std::vector<int> ids;
};

}  // namespace detail

/// `size` tokens: the bytes that the text has, in rising order, then one after the other the two neighbors
/// that come most often, if together they are not too long; of equals those of the lowest ids. Fewer where
/// the text has no more of them.
inline std::vector<Token> learn_vocabulary(std::string_view text, std::size_t size) {
  std::map<std::string_view, std::int64_t> counts;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = piece_length(rest);
    ++counts[rest.substr(0, length)];
    rest.remove_prefix(length);
  }
  std::vector<Token> tokens;
  int id_of_byte[256];
  for (int byte = 0; byte < 256; ++byte) {
    if (text.find(static_cast<char>(byte)) == std::string_view::npos) continue;
    id_of_byte[byte] = static_cast<int>(tokens.size());
    tokens.push_back({.length = 1, .bytes = {static_cast<char>(byte)}});
  }
  std::vector<detail::CountedPiece> pieces;
  for (const auto& [piece, count] : counts) {
    pieces.push_back({count, {}});
    for (const char c : piece) pieces.back().ids.push_back(id_of_byte[static_cast<unsigned char>(c)]);
  }

  while (tokens.size() < size) {
    const std::size_t known = tokens.size();
    std::vector<std::int64_t> of_pair(known * known);
    for (const auto& [count, ids] : pieces) {
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        of_pair[static_cast<std::size_t>(ids[i]) * known + static_cast<std::size_t>(ids[i + 1])] += count;
      }
    }
    const auto text_of = [&tokens](int left, int right) {
      return std::string(tokens[static_cast<std::size_t>(left)].text()) +
             std::string(tokens[static_cast<std::size_t>(right)].text());
    };
    std::size_t most = 0;
    std::string together;
    for (std::size_t pair = 0; pair < of_pair.size(); ++pair) {
      if (of_pair[pair] <= (together.empty() ? 1 : of_pair[most])) continue;
      std::string candidate = text_of(static_cast<int>(pair / known), static_cast<int>(pair % known));
      if (candidate.size() > Token::kLongest) continue;
      most = pair;
      together = std::move(candidate);
    }
    if (together.empty()) break;
    // Other neighbors of the same text become this token as well.
    int id = Vocabulary{tokens}.id_of(together);
    if (id < 0) {
      id = static_cast<int>(known);
      Token token{.length = static_cast<unsigned char>(together.size()), .bytes = {}};
      std::copy(together.begin(), together.end(), token.bytes);
      tokens.push_back(token);
    }
    for (auto& [count, ids] : pieces) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < ids.size(); ++kept) {
        const bool merged = i + 1 < ids.size() && text_of(ids[i], ids[i + 1]) == together;
        ids[kept] = merged ? id : ids[i];
        i += merged ? 2 : 1;
      }
      ids.resize(kept);
    }
  }
  return tokens;
}

}  // namespace stream

// The vocabulary of examples/stream: stream_test builds and runs this. Ends with `N passed, N failed`.
#include <cstdio>
#include <set>
#include <string>

#include "../../examples/stream/learn_vocabulary.hpp"

namespace {

int passed, failed;

void expect(bool condition, const char* what) {
  ++(condition ? passed : failed);
  if (!condition) std::printf("FAILED %s\n", what);
}

std::string decoded(const stream::Vocabulary& vocabulary, std::string_view text) {
  std::vector<int> ids(text.size());
  const int count = vocabulary.encode(text, ids.data());
  std::string result;
  for (int i = 0; i < count; ++i)
    result += vocabulary.tokens[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])].text();
  return result;
}
int count_of(const stream::Vocabulary& vocabulary, std::string_view text) {
  std::vector<int> ids(text.size());
  return vocabulary.encode(text, ids.data());
}

}  // namespace

int main() {
  const std::string text =
      "low low low low low lower lower newest newest newest newest newest newest widest widest widest";
  const auto tokens = stream::learn_vocabulary(text, 24);
  const stream::Vocabulary vocabulary{tokens};
  const std::string bytes = " deilnorstw";

  expect(tokens.size() == 24, "as many tokens as were asked for");
  std::string first;
  for (std::size_t i = 0; i < bytes.size(); ++i) first += tokens[i].text();
  expect(first == bytes, "bytes of the text come first, in rising order");
  // Of the pairs "es", "st", "we", " n" … the most frequent is "es", nine times, of which three are in
  // "widest".
  expect(tokens[bytes.size()].text() == "es" && tokens[bytes.size() + 1].text() == "est",
         "then the most frequent neighbors");
  std::set<std::string_view> texts;
  for (const auto& token : tokens) texts.insert(token.text());
  expect(texts.size() == tokens.size(), "no token is there twice");
  expect(count_of(vocabulary, " newest") == 1, "a frequent word is one token");
  expect(count_of(vocabulary, "low low") == count_of(vocabulary, "low") + count_of(vocabulary, " low"),
         "no token goes beyond a word");
  expect(decoded(vocabulary, text) == text, "tokens are the text again");
  expect(decoded(vocabulary, "  slowest  width") == "", "a byte without a token is refused");
  expect(decoded(vocabulary, "  slowest  deed ") == "  slowest  deed ",
         "words and spaces that it has never seen");
  expect(count_of(vocabulary, "") == 0, "no text has no tokens");

  expect(stream::learn_vocabulary("", 10).empty(), "nothing is learned of nothing");
  expect(stream::learn_vocabulary("abc", 10).size() == 3, "what comes once becomes no token");
  const auto repeated = stream::learn_vocabulary(std::string(1000, 'a'), 300);
  bool all_fit = true;
  for (const auto& token : repeated) all_fit = all_fit && token.length <= stream::Token::kLongest;
  expect(all_fit && decoded({repeated}, std::string(77, 'a')) == std::string(77, 'a'),
         "long tokens have an end");

  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

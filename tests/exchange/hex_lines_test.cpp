#include <attune/exchange/hex_lines.hpp>

#include "check.hpp"
#include "memory_file.hpp"

namespace {

using check::MemoryFile;

MemoryFile text_of(std::string_view file, std::size_t piece) {
  MemoryFile text;
  attune::HexLines lines([&text](const char* line, std::size_t length) { text(line, length); });
  for (std::size_t at = 0; at < file.size(); at += piece) {
    lines(file.data() + at, file.size() - at < piece ? file.size() - at : piece);
  }
  lines.end();
  return text;
}

}  // namespace

TEST(HexLines, a_line_has_its_offset_bytes_and_crc) {
  const MemoryFile text = text_of("123456789", 9);
  // CRC-32 of "123456789" is cbf43926; a line's begins with its offset, here 0.
  EXPECT_TRUE(text.text() ==
              "bytes 00000000 313233343536373839 cbf43926\n"
              "bytes end 00000009 cbf43926\n");
}

TEST(HexLines, lines_do_not_depend_on_slices) {
  constexpr std::string_view kFile = "Lines of thirty-two bytes, one behind the other, and the rest.";
  const MemoryFile whole = text_of(kFile, kFile.size()), single = text_of(kFile, 1);
  EXPECT_TRUE(whole.text() == single.text());
  EXPECT_TRUE(whole.contains("\nbytes 00000020 "));
  EXPECT_TRUE(whole.contains("\nbytes end 0000003e "));
  EXPECT_TRUE(text_of("", 1).text() == "bytes end 00000000 00000000\n");
}

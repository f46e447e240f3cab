// The page of errors names every Status, and quotes messages as the library has them.
#include <attune/core/status.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "check.hpp"

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::filesystem::path kRoot = [] {
  const std::string_view path = __FILE__;
  return std::filesystem::path(path.substr(0, path.rfind("tests/")));
}();
const std::string kPage = contents(kRoot / "examples/guide/errors.md");

// Everything in double quotes of a source, where parts of one literal are one.
std::string literals(const std::string& source) {
  return std::regex_replace(source, std::regex(R"("\s*\n\s*")"), "");
}

}  // namespace

TEST(ErrorsPage, names_every_status) {
  const std::string header = contents(kRoot / "lib/attune/core/status.hpp");
  const std::regex enumerator(R"((k[A-Z][A-Za-z]*)\s*=\s*\d+,\s+//)");
  int statuses = 0;
  for (std::sregex_iterator name(header.begin(), header.end(), enumerator), end; name != end; ++name) {
    ++statuses;
    if ((*name)[1] == "kOk") continue;
    EXPECT_NE(kPage.find('`' + (*name)[1].str() + '`'), std::string::npos) << (*name)[1];
  }
  EXPECT_EQ(statuses, static_cast<int>(attune::Status::kPaddingToken) + 1);
}

TEST(ErrorsPage, quotes_messages_of_the_library) {
  std::string library;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "lib/attune")) {
    if (entry.path().extension() == ".hpp") library += literals(contents(entry.path()));
  }
  const std::regex quoted(R"(\| `(attune[^`]*)` \|)");
  int messages = 0;
  for (std::sregex_iterator message(kPage.begin(), kPage.end(), quoted), end; message != end; ++message) {
    ++messages;
    EXPECT_NE(library.find((*message)[1].str()), std::string::npos) << (*message)[1];
  }
  EXPECT_GE(messages, 10);
}

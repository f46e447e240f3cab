// Whether a page is well formed as XML: every element closed in order, attributes quoted and named once, no
// stray < or &. What a browser forgives, it does not.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace check {

/// Empty, or what is wrong.
inline std::string malformed(std::string_view page) {
  std::vector<std::string> open;
  const auto around = [&page](std::size_t at) { return std::string(page.substr(at > 20 ? at - 20 : 0, 60)); };
  const auto entity = [&page](std::size_t at) {
    for (const std::string_view name : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (page.substr(at, name.size()) == name) return true;
    }
    return false;
  };
  if (page.starts_with("<!DOCTYPE html>")) page.remove_prefix(15);
  bool any = false;
  for (std::size_t at = 0; at < page.size();) {
    if (page[at] != '<') {
      if (page[at] == '&' && !entity(at)) return "stray & in: " + around(at);
      if (open.empty() && page[at] != '\n') return "text outside of everything: " + around(at);
      ++at;
      continue;
    }
    const std::size_t begin = at++;
    const bool closing = page[at] == '/';
    if (closing) ++at;
    std::string name;
    while (at < page.size() && (std::isalnum(static_cast<unsigned char>(page[at])) != 0)) name += page[at++];
    if (name.empty()) return "stray < in: " + around(begin);
    if (closing) {
      if (page[at] != '>' || open.empty() || open.back() != name)
        return "closes what is not open: " + around(begin);
      open.pop_back();
      ++at;
      continue;
    }
    if (open.empty() && any) return "a second root: " + around(begin);
    any = true;
    std::set<std::string> attributes;
    while (at < page.size() && page[at] == ' ') {
      std::string attribute;
      for (++at; at < page.size() && page[at] != '='; ++at) attribute += page[at];
      if (!attributes.insert(attribute).second) return "twice " + attribute + ": " + around(begin);
      if (page.substr(at, 2) != "=\"") return "an attribute without quotes: " + around(begin);
      for (at += 2; at < page.size() && page[at] != '"'; ++at) {
        if (page[at] == '<' || (page[at] == '&' && !entity(at))) return "stray < or &: " + around(at);
      }
      ++at;
    }
    if (page.substr(at, 2) == "/>") {
      at += 2;
    } else if (at < page.size() && page[at] == '>') {
      open.push_back(name);
      ++at;
    } else {
      return "a tag without an end: " + around(begin);
    }
  }
  return open.empty() && any ? "" : "not closed: " + (open.empty() ? "nothing" : open.back());
}

/// How often `what` occurs.
inline int occurrences(std::string_view text, std::string_view what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace check

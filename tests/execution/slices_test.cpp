#include <attune/execution/slices.hpp>

#include <attune/execution/pass.hpp>

#include <algorithm>
#include <array>

#include "check.hpp"

namespace {

constexpr attune::NoMask kNone;  // no temporary, which clang warns of

template <int most_work>
auto in_slice(attune::detail::SliceWalk& walk) {
  return attune::Context(kNone, attune::OneSlice<most_work>(walk));
}
// Of the first tokens of 21.
template <class Slices>
auto of_length(const Slices& slices, int length) {
  const attune::detail::FirstTokens<21> tokens{length};
  return attune::Context(kNone, slices, tokens, tokens);
}

// What a sequence of slices writes: how often each row and each element was done.
struct Done {
  std::array<int, 3> single{};
  std::array<int, 21> rows{};
  std::array<int, 150> elements{};
  int largest = 0;
};

template <class Call>
void sequence(Done& done, const Call& context) {
  context.stage([&] { ++done.single[0]; });
  context.template rows<21, 10>([&]<int count>(int first) {
    for (int i = first; i < first + count; ++i) ++done.rows[static_cast<std::size_t>(i)];
    done.largest = std::max(done.largest, 10 * count);
  });
  context.stage([&] { ++done.single[1]; });
  context.template elements<150, 1>([&](int first, int count) {
    for (int i = first; i < first + count; ++i) ++done.elements[static_cast<std::size_t>(i)];
    done.largest = std::max(done.largest, count);
  });
  context.stage([&] { ++done.single[2]; });
}

template <class Numbers>
int sum(const Numbers& numbers) {
  int total = 0;
  for (const int number : numbers) total += number;
  return total;
}

bool complete(const Done& done, int times) {
  for (const int n : done.single) {
    if (n != times) return false;
  }
  for (const int n : done.rows) {
    if (n != times) return false;
  }
  for (const int n : done.elements) {
    if (n != times) return false;
  }
  return true;
}

// How many slices of at most so much work it takes; each does something, and everything is done once.
template <int most_work>
int count_slices() {
  Done done;
  attune::SliceAddress address;
  for (int slices = 1;; ++slices) {
    const int already = sum(done.single) + sum(done.rows) + sum(done.elements);
    attune::detail::SliceWalk walk(address, most_work);
    sequence(done, in_slice<most_work>(walk));
    EXPECT_GT(sum(done.single) + sum(done.rows) + sum(done.elements), already);
    EXPECT_LE(done.largest, std::max(most_work, 10));
    if (!walk.complete()) continue;
    EXPECT_TRUE(complete(done, 1));
    return slices;
  }
}

// What a sequence of slices does of 21 tokens.
struct Tokens {
  std::array<int, 21> rows{};
  std::array<int, 63> elements{};
  int of_other_rows = 0;
};

template <class Call>
void sequence(Tokens& done, const Call& context) {
  context.template tokens<21, 10>([&]<int count>(auto first) {
    for (int i = 0; i < attune::rows_in<count>(first); ++i) ++done.rows[static_cast<std::size_t>(first + i)];
  });
  context.template token_elements<21, 3, 1>([&](int first, int count) {
    for (int i = first; i < first + count; ++i) ++done.elements[static_cast<std::size_t>(i)];
  });
  context.template tokens<5, 10>(
      [&]<int count>(auto first) { done.of_other_rows += attune::rows_in<count>(first); });
}

TEST(Slices, compute_only_the_valid_tokens) {
  for (const int length : {1, 8, 9, 20, 21}) {
    Tokens at_once, in_slices;
    sequence(at_once, of_length(attune::RunToCompletion{}, length));
    EXPECT_EQ(sum(at_once.rows), length);
    EXPECT_EQ(sum(at_once.elements), 3 * length);
    EXPECT_EQ(at_once.of_other_rows, 5);
    attune::SliceAddress address;
    for (bool more = true; more;) {
      attune::detail::SliceWalk walk(address, 40);
      sequence(in_slices, of_length(attune::OneSlice<40>(walk), length));
      more = !walk.complete();
    }
    for (int i = 0; i < 21; ++i)
      EXPECT_EQ(in_slices.rows[static_cast<std::size_t>(i)], i < (length + 3) / 4 * 4 ? 1 : 0);
    EXPECT_EQ(sum(in_slices.elements), 3 * length);
    EXPECT_EQ(in_slices.of_other_rows, 5);
  }
}

TEST(Slices, in_one_go_does_all_of_them) {
  Done done;
  sequence(done, attune::Context<>{});
  EXPECT_TRUE(complete(done, 1));
}

TEST(Slices, do_every_row_and_element_once_whatever_their_size) {
  EXPECT_EQ(count_slices<100'000>(), 3 + 2);  // a stage of unknown work has a slice to itself
  EXPECT_EQ(count_slices<100>(), 3 + 3 + 3);  // 8 + 8 + 5 rows, 64 + 64 + 22 elements
  EXPECT_EQ(count_slices<30>(), 3 + 7 + 5);   // 3 rows; 30 elements are less than a whole tile
  EXPECT_EQ(count_slices<1>(), 3 + 21 + 150);
}

// In which order elements and stages were run.
struct Order {
  std::array<int, 1024> items{};
  std::size_t size = 0;

  void push_back(int item) { items[size++ % items.size()] = item; }
  bool operator==(const Order&) const = default;
};

// Layers within layers, deeper than an address has levels. `visits` counts what a walk comes by.
template <int depth, class Call>
void nested(Order& done, int& visits, const Call& context) {
  ++visits;
  if constexpr (depth == 0) {
    context.template elements<3, 4>([&](int first, int count) {
      for (int i = first; i < first + count; ++i) done.push_back(i);
    });
  } else {
    context.stage([&] { done.push_back(-depth); });
    context.template repeat<3>([&](int i) {
      nested<depth - 1>(done, visits, context);
      context.stage([&] { done.push_back(10 * depth + i); });
    });
    context.inside([&] { context.inside([&] { nested<depth - 1>(done, visits, context); }); });
  }
}

template <int depth, int most_work>
int check_nested() {
  Order expected, done;
  int visits = 0, most_visits = 0;
  nested<depth>(expected, visits, attune::Context<>{});
  attune::SliceAddress address;
  for (bool more = true; more; most_visits = std::max(most_visits, visits)) {
    visits = 0;
    attune::detail::SliceWalk walk(address, most_work);
    nested<depth>(done, visits, in_slice<most_work>(walk));
    more = !walk.complete();
  }
  EXPECT_TRUE(done == expected);
  return most_visits;
}

TEST(Slices, resume_in_order_at_every_depth) {
  check_nested<1, 1>();
  check_nested<2, 5>();
  check_nested<3, 8>();
  check_nested<4, 12>();
  check_nested<5, 100>();
}

TEST(Slices, do_not_revisit_finished_work) { EXPECT_LE((check_nested<3, 1>()), 3 + 2); }

TEST(Slices, end_after_the_last) {
  Done done;
  attune::SliceAddress address;
  while (true) {
    attune::detail::SliceWalk walk(address, 1);
    sequence(done, in_slice<1>(walk));
    if (walk.complete()) break;
  }
  attune::detail::SliceWalk walk(address, 1);
  sequence(done, in_slice<1>(walk));
  EXPECT_TRUE(complete(done, 1));
}

}  // namespace

#include <attune/execution/crew_slices.hpp>

#include <attune/execution/context.hpp>

#include "check.hpp"

namespace {

using namespace attune;

CrewPass<OneCore> pass;
OneCore core;
int rows[37], elements[50];

}  // namespace

TEST(CrewPass, one_member_does_all_slices) {
  int scratch = 0, single = 0;
  const Status status = pass.run(core, &scratch, [&](const auto& slices) {
    const NoMask mask;
    const Context context(mask, slices);
    context.stage([&] { ++single; });
    context.template rows<37, 100>([&]<int count>(int first) {
      for (int i = first; i < first + count; ++i) rows[i] += single;
    });
    context.template elements<50, 100>([&](int first, int count) {
      for (int i = first; i < first + count; ++i) elements[i] += rows[i % 37];
    });
    EXPECT_EQ(context.own(&scratch), &scratch);
  });
  EXPECT_EQ(status, Status::kOk);
  for (const int n : rows) EXPECT_EQ(n, 1);
  for (const int n : elements) EXPECT_EQ(n, 1);
}

TEST(CrewPass, an_error_ends_the_pass) {
  int scratch = 0, later = 0;
  const auto refuse = [&](Status status) {
    return pass.run(core, &scratch, [&](const auto& slices) {
      const NoMask mask;
      const Context context(mask, slices);
      if (context.answer([&] { return status; }) == Status::kOk) context.stage([&] { ++later; });
    });
  };
  EXPECT_EQ(refuse(Status::kInvalidToken), Status::kInvalidToken);
  EXPECT_EQ(later, 0);
  EXPECT_EQ(refuse(Status::kOk), Status::kOk);
  EXPECT_EQ(later, 1);
}

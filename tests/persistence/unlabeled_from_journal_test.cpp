// A head without labels from the takes in a journal: features are recomputed from journaled inputs, and none
// are stored.
#include <cstring>

#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/sequential.hpp>
#include <attune/persistence/training_journal.hpp>
#include <attune/training/entropy.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/unlabeled_head.hpp>

#include "check.hpp"

namespace {

using attune::Rng;
using attune::Status;

constexpr int kTakes = 30, kClasses = 3, kWidth = 6;
using Body = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 3, .d_out = kWidth}>,
                                attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = kWidth}>>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = kWidth, .d_out = kClasses}>;
using Model = attune::Sequential<Body, Head>;
using Learning = attune::UnlabeledHead<kWidth, kClasses, kTakes>;
using Take = attune::JournaledSequence<Model::Input, Model::Output>;

Model::Parameters base;
Learning::Sums factory;

Take take(Rng& rng, int label) {
  Take drawn{};
  for (int token = 0; token < 4; ++token) {
    for (int j = 0; j < 3; ++j) drawn.x(token, j) = (j == label ? 1.5f : 0.0f) + 0.6f * rng.normal();
  }
  return drawn;  // with targets of zero, as Entropy takes them
}
void features_of(const Model::Input& x, Body::Output& features) {
  static Body::InferenceScratch scratch;
  attune::infer<Body>(base.layer<0>(), x, features, scratch);
}
template <class GetFeatures>
std::uint32_t learn(const GetFeatures& features) {
  static Learning learning;
  const auto no_probe = [](const Head::Parameters&) { return attune::Evaluation<>{}; };
  Head::Parameters head;
  const auto result = learning.learn(base.layer<1>(), factory, kTakes, features, no_probe, head, {},
                                     {.guard = {.least_clear = 0, .most_clear = 1, .largest_imbalance = 1}});
  EXPECT_TRUE(result.ok() && result.rounds > 0);
  EXPECT_NE(attune::hash_bits(head), attune::hash_bits(base.layer<1>()));
  return attune::hash_bits(head);
}

}  // namespace

TEST(UnlabeledHead, learns_the_same_from_inputs_in_a_journal) {
  static attune::Trainer<Model, attune::Entropy, attune::Sgd<>, kTakes> trainer;
  static Body::Output stored[kTakes];
  static char bytes[8192];
  std::size_t size = 0;
  trainer.initialize(attune::XavierUniform{}, Rng{1});
  base = trainer.parameters();
  const auto sink = [&size](const char* more, std::size_t count) {
    if (size + count <= sizeof bytes) std::memcpy(bytes + size, more, count);
    size += count;
  };
  attune::TrainingJournal journal(trainer, sink);
  journal.started();
  Rng rng(2);
  for (int i = 0; i < 60; ++i) {
    Body::Output features;
    features_of(take(rng, i % kClasses).x, features);
    EXPECT_EQ(factory.add(features, i % kClasses), Status::kOk);
  }
  for (int i = 0; i < kTakes; ++i) {
    const Take drawn = take(rng, i % kClasses);
    EXPECT_TRUE(journal.accumulate(drawn).ok());
    features_of(drawn.x, stored[i]);
  }
  EXPECT_LT(size, sizeof bytes);

  attune::JournalReader reader({});
  const auto from_journal = [&](int i, Body::Output& features) {
    if (i == 0) reader = attune::JournalReader(std::as_bytes(std::span(bytes, size)));
    attune::JournalEntry entry{};
    do {
      if (const Status status = reader.next(entry); status != Status::kOk) return status;
    } while (entry.event != attune::JournalEvent::kSequenceBytes);
    static struct {
      Model::Input x;
      Model::Output target;
    } read;
    if (!entry.read(read)) return Status::kUnreadable;
    features_of(read.x, features);
    return Status::kOk;
  };
  const auto from_memory = [](int i, Body::Output& features) {
    features = stored[i];
    return Status::kOk;
  };
  EXPECT_EQ(learn(from_journal), learn(from_memory));
}

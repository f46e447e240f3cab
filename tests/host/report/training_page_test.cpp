#include <attune/host/report/training_page.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "well_formed.hpp"

namespace {

using attune::host::TrainingPage;

using Model = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 6, .num_heads = 2}>;
using Trainer = attune::Trainer<Model>;

struct Trained {
  Trainer trainer;
  Trainer::BatchInput x;
  Trainer::BatchTarget target;
};

// A page of everything, of a training that was.
std::string page_of(Trained& trained, const std::string& title) {
  trained.trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  check::fill(trained.x, rng);
  check::fill(trained.target, rng);
  double accuracy = 0;
  const auto run = attune::host::run_training(
      trained.trainer, {.steps = 40, .validate_every = 10, .write = nullptr},
      [&](int) { return trained.trainer.step(trained.x, trained.target, {.learning_rate = 0.01f}); },
      [&] { return accuracy += 0.125; });
  TrainingPage page(title);
  page.fact("hash <of> parameters", "575363d1 & more");
  page.curves(run);
  Model::Output y;
  EXPECT_EQ(trained.trainer.predict(trained.x, y), attune::Status::kOk);
  page.sample("a \"sample\"", trained.x);
  page.attention(attune::host::attention_maps(trained.trainer.tape()));
  page.confusion({"yes", "no"}, {90, 10, 1, 99});
  page.memory_of_device<Model>(Trainer::memory());
  return page.text();
}

}  // namespace

TEST(TrainingPage, is_well_formed_and_loads_nothing) {
  static Trained trained;
  const std::string page = page_of(trained, "a </title><script>alert(1)</script> & \"title\"");
  EXPECT_EQ(check::malformed(page), "");
  for (const char* never : {"<script", "href=", "src=", "url(", "http:", "https:", "@import"}) {
    EXPECT_EQ(page.find(never), std::string::npos) << never;
  }
  EXPECT_NE(page.find("name=\"viewport\""), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(TrainingPage, has_the_numbers_that_were_given) {
  static Trained trained;
  const std::string page = page_of(trained, "of a test");
  EXPECT_EQ(check::occurrences(page, "of a test"), 2);  // title and heading
  EXPECT_NE(page.find("<dt>hash &lt;of&gt; parameters</dt><dd>575363d1 &amp; more</dd>"), std::string::npos);
  // A value under the pointer for each of 40 losses and four validations, the best of which is named.
  EXPECT_EQ(check::occurrences(page, "<title>step "), 44);
  EXPECT_NE(page.find("<title>step 20: 25 %</title>"), std::string::npos);
  EXPECT_NE(page.find("best: 50.0 % at step 40"), std::string::npos);
  // The weights of both heads, as the tape has them.
  for (int head = 0; head < 2; ++head) {
    const auto weights = trained.trainer.tape().head_weights(head);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const std::string expected = attune::host::html::joined(
            "<title>query ", i, ", key ", j, ": ",
            attune::host::html::number(static_cast<double>(weights(i, j)), 3), "</title>");
        EXPECT_NE(page.find(expected), std::string::npos) << expected;
      }
    }
  }
  EXPECT_EQ(check::occurrences(page, "<title>query "), 2 * 16);
  EXPECT_EQ(check::occurrences(page, "<title>row "), 4 * 6);
  EXPECT_NE(page.find(">90</td>"), std::string::npos);
  EXPECT_NE(page.find("99.0 %"), std::string::npos);
  EXPECT_NE(
      page.find("Training: RAM <b>" + attune::host::html::count(Trainer::memory().total()) + "</b> bytes"),
      std::string::npos);
  EXPECT_NE(
      page.find("Inference: flash <b>" + attune::host::html::count(sizeof(Model::Parameters)) + "</b> bytes"),
      std::string::npos);
}

TEST(TrainingPage, shows_a_model_of_tokens) {
  using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 8}>;
  using OfTokens = attune::Sequential<
      attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 4}>, Encoder>;
  static attune::Trainer<OfTokens> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  OfTokens::Output y;
  ASSERT_EQ(trainer.predict({{4, 0, 2}}, y), attune::Status::kOk);
  TrainingPage page("tokens");
  page.attention(attune::host::attention_maps(trainer.tape()));
  page.memory_of_device<OfTokens>(trainer.memory());
  EXPECT_EQ(check::malformed(page.text()), "");
  EXPECT_EQ(check::occurrences(page.text(), "<title>query "), 2 * 9);
}

TEST(TrainingPage, of_a_run_without_a_step_is_well_formed) {
  TrainingPage page("nothing");
  page.curves(attune::host::TrainingRun<int>{});
  page.attention({});
  page.confusion({"a"}, {1, 2});  // not a matrix of these classes: left out
  EXPECT_EQ(check::malformed(page.text()), "");
  EXPECT_EQ(page.text().find("Confusion"), std::string::npos);
}

TEST(TrainingPage, a_failed_write_is_reported) {
  TrainingPage page("written");
  const std::string path = testing::TempDir() + "attune_training_page_test.html";
  ASSERT_TRUE(page.write(path));
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), page.text());
  std::remove(path.c_str());
  EXPECT_FALSE(page.write(testing::TempDir() + "no such folder/page.html"));
  if (std::ifstream("/dev/full")) {
    EXPECT_FALSE(page.write("/dev/full"));
  }
}

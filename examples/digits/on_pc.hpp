// The same training on all cores of a PC, to the same bits, with validation on the way, on images that are
// held out of training for that (144 unless --validation says how many), and a page of HTML at the end:
//
//   --threads N        on N threads; 0: as many as there are cores
//   ATTUNE_PAGE=FILE   in the environment: writes FILE (examples/run digits --page FILE)
//
// Ctrl-C ends training: what is then printed and written are the best parameters so far.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include <arguments.hpp>
#include <attune/host/parallel_trainer.hpp>
#include <attune/host/report/training_page.hpp>

#include "evaluation.hpp"
#include "training.hpp"

namespace digits::on_pc {

using ParallelTrainer = attune::host::ParallelTrainer<Model, Loss, attune::AdamW, kBatch, Plan>;
using Run = attune::host::TrainingRun<ParallelTrainer::Parameters>;

struct Part {
  const PackedImage* images;
  const char* labels;
  int count;
};
inline Part validation_part(int held_out) {
  const int first = kTrainImages - held_out;
  return {kPackedTrain + first, kTrainLabels + first, held_out};
}

struct Batch {
  ParallelTrainer::BatchInput images;
  ParallelTrainer::BatchTarget labels;
  attune::Tensor<float, kBatch, kClasses> logits;
};

inline const char* page_file() { return std::getenv("ATTUNE_PAGE"); }
/// Whether somebody asks for it; otherwise training is as on a board.
inline bool wanted() { return port::argument("--threads", -1) >= 0 || page_file() != nullptr; }

inline void draw(attune::Rng& rng, Shuffle& order, Batch& batch) {
  Example example;
  for (int i = 0; i < kBatch; ++i) {
    digits::draw(rng, order, example);
    std::copy_n(example.image.values, Image::size, batch.images.values + i * Image::size);
    batch.labels[static_cast<std::size_t>(i)] = example.label[0];
  }
}

/// A batch at a time.
inline Evaluation evaluate(ParallelTrainer& trainer, const Part& part, Batch& batch) {
  Evaluation evaluation{};
  for (int first = 0; first < part.count; first += kBatch) {
    const int images = std::min(kBatch, part.count - first);
    for (int i = 0; i < images; ++i) {
      Image image;
      unpack(part.images[first + i], image);
      std::copy_n(image.values, Image::size, batch.images.values + i * Image::size);
    }
    if (trainer.predict_batch(batch.images, batch.logits) != attune::Status::kOk) break;
    for (int i = 0; i < images; ++i) {
      Model::Output logits;
      std::copy_n(batch.logits.values + i * kClasses, kClasses, logits.values);
      evaluation.add(logits, part.labels[first + i] - '0');
    }
  }
  return evaluation;
}

inline bool write_page(const char* file, ParallelTrainer& trainer, const Run& run,
                       const Evaluation& evaluation, int steps_of_parameters, int held_out) {
  using attune::host::html::joined;
  attune::host::TrainingPage page(joined("digits: 8 tokens of 8 pixels, d_model ", kWidth, ", heads ",
                                         kEncoder.attention.num_heads, ", blocks ", kBlocks));
  char hash[9];
  std::snprintf(hash, sizeof hash, "%08x", attune::hash_bits(trainer.parameters()));
  page.fact("recognized", attune::host::html::percent(static_cast<double>(evaluation.accuracy())));
  page.fact("unseen images", std::to_string(evaluation.images));
  page.fact("validation images", std::to_string(held_out));
  page.fact("parameters", attune::host::html::count(kParameters));
  page.fact("their hash", hash);
  if (steps_of_parameters != run.steps) page.fact("they are of", joined("step ", steps_of_parameters));
  page.fact("steps", joined(run.steps, " of ", kBatch, " images"));
  page.fact("training", attune::host::duration_text(run.seconds));
  page.fact("threads", std::to_string(trainer.threads()));
  page.curves(run);

  Image image;
  Model::Output logits;
  unpack(kPackedTest[0], image);
  if (trainer.predict(image, logits) != attune::Status::kOk) return false;
  page.sample(joined("An image it has not seen: ", kTestLabels[0] - '0'), image);
  page.attention(attune::host::attention_maps(trainer.tape()));
  std::vector<std::string> names;
  std::vector<std::int64_t> counts;
  for (int i = 0; i < kClasses; ++i) {
    names.push_back(std::to_string(i));
    counts.insert(counts.end(), evaluation.confusion[i], evaluation.confusion[i] + kClasses);
  }
  page.confusion(names, counts);
  page.memory_of_device<Model>(kMemory);
  return page.write(file);
}

struct Instructions {
  std::uint64_t step;
  std::uint64_t inference;
};

/// Of the first step and of one inference, on one thread as on a board: they depend on no number of threads.
inline Instructions count_instructions(std::uint64_t seed, int held_out) {
  const auto trainer = std::make_unique<Trainer>();
  trainer->initialize(attune::XavierUniform{}, rng_of_parameters(seed));
  attune::Rng rng = rng_of_images(seed);
  Shuffle order(kTrainImages - held_out);
  Example example;
  Model::Output logits;
  Instructions instructions{};
  port::begin_counting();
  const attune::Status status = take_step(*trainer, example, rng, order, 0).status;
  if (status == attune::Status::kOk) instructions.step = port::end_counting();
  port::begin_counting();
  if (trainer->predict(example.image, logits) == attune::Status::kOk) {
    instructions.inference = port::end_counting();
  }
  return instructions;
}

/// All of the example: trains, tests, prints, writes the page. Returns the program's exit code.
inline int run(int steps, int test_images, std::uint64_t seed) {
  ParallelTrainer trainer({.threads = port::argument("--threads", 0)});
  trainer.initialize(attune::XavierUniform{}, rng_of_parameters(seed));
  const auto batch = std::make_unique<Batch>();
  attune::Rng rng = rng_of_images(seed);
  const int held_out = digits::held_out(144);
  Shuffle order(kTrainImages - held_out);
  port::print("training on ", trainer.threads(), " threads and ", kTrainImages - held_out,
              " images, validated on ", held_out, " others; Ctrl-C ends it and keeps the parameters\n");
  const auto train = [&](const auto&... validate) {
    return attune::host::run_training(
        trainer,
        {.steps = steps,
         .validate_every = 100,
         .terminal = port::is_terminal(),
         .write = [](std::string_view text) { port::write(text.data(), text.size()); }},
        [&](int step) {
          draw(rng, order, *batch);
          return trainer.step(batch->images, batch->labels, options(step));
        },
        validate...);
  };
  const auto validate = [&] { return evaluate(trainer, validation_part(held_out), *batch).accuracy(); };
  const Run run = held_out > 0 ? train(validate) : train();
  if (run.end == attune::host::TrainingEnd::kRefused) return 1;
  const bool interrupted = run.end == attune::host::TrainingEnd::kInterrupted;
  const int steps_of_parameters = interrupted ? run.best_step : run.steps;
  if (interrupted) {
    trainer.load(*run.best);
    port::print("going on with the best parameters so far, those of step ", run.best_step, '\n');
  }

  const Evaluation evaluation = evaluate(trainer, {kPackedTest, kTestLabels, test_images}, *batch);
  static terminal::LossCurve<60> curve;
  float last_loss = run.losses.empty() ? 0.0f : run.losses.front();  // smoothed over about 50 steps
  for (int step = 0; step < run.steps; ++step) {
    const float loss = run.losses[static_cast<std::size_t>(step)];
    curve.add(step, run.steps, loss);
    last_loss += (loss - last_loss) * 0.02f;
  }
  if (run.steps > 0) curve.print<85>();
  print_memory();
  print(evaluation);
  const char* const file = page_file();
  if (file != nullptr && !write_page(file, trainer, run, evaluation, steps_of_parameters, held_out)) {
    port::print("cannot write ", file, '\n');
    return 1;
  }
  if (file != nullptr) port::print("wrote ", file, '\n');
  print_result(evaluation);
  port::print(" precision=", kPrecision, " steps=", steps_of_parameters,
              " loss_last=", port::fixed(last_loss, 6), " threads=", trainer.threads());
  const Instructions instructions = count_instructions(seed, held_out);
  terminal::print_instructions("step", instructions.step);
  print_result_end(instructions.inference, attune::hash_bits(trainer.parameters()), kMemory.total(),
                   port::stack_high_water(), port::heap_calls(),
                   static_cast<std::uint64_t>(run.seconds * 1e6));
  return 0;
}

}  // namespace digits::on_pc

// A vibration monitor, on the machine it watches. A sample of three axes comes every millisecond. 32 of them
// are a window, which is classified before the next one is complete. Every fourth window is inspected: what
// was wrong with the machine is known afterwards, and the classifier, which was trained on a PC before the
// machine left the factory, learns from it in the time that is left. Power may fail at any time.
//
// Nothing takes longer than a tick: a prediction, a training step and a save all come in slices, and every
// tick is served between two of them. What is learned depends on the samples alone, not on when it is
// learned.
//
// On two cores (--cores 2) core 1 trains, and core 0 does everything else with the parameters that core 1
// publishes. Neither waits for the other within a step.
//
//   --steps N    the first N training steps only, of four windows each
//   --seed N     another machine; without it 1
//   --unseen 1   from the middle on, the shaft rubs now and then: a condition that nobody has told of
//   --learn 1    trains only in sessions, which a DriftTrigger starts and ends (loss of inspected windows)
//   --resets N   N resets at moments that nobody expects: between any two slices, or in the middle of a save
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include <arguments.hpp>
#include <instructions.hpp>
#include <ticks.hpp>
#if ATTUNE_EXAMPLE_CORES == 2
#include <second_core.hpp>
#endif

#include "../terminal.hpp"
#include "adapted.hpp"
#include "nonvolatile.hpp"
#include "report.hpp"
#include "watch.hpp"

namespace {

using attune::Status;
using monitor::kConditions;
using monitor::Model;
using monitor::Tally;
using monitor::Window;

constexpr int kWindowsOfStep = 4;  // a step is trained with the latest inspected window of each condition
constexpr int kUnchanged = monitor::kWindows / 10;  // windows before the machine changes
constexpr int kInspected = 1;                       // of the windows of a step
constexpr int kStepsOfSave = 8;
constexpr attune::DriftOptions kDrift{.expected = 0.0f, .slack = 0.2f, .start = 2.0f, .stop = 2.0f};
constexpr attune::AdamW::Options kOptions{.learning_rate = 2e-3f, .beta2 = 0.99, .weight_decay = 0.0f};

using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, kConditions>;

/// The latest inspected window of each condition.
struct Inspected {
  Window window[kConditions];
  bool known[kConditions];
  [[nodiscard]] bool all_known() const { return std::all_of(known, known + kConditions, std::identity{}); }
};
struct Progress {
  static constexpr std::uint32_t kFingerprint = 2;
  std::int32_t step;                     // behind which training goes on
  std::int32_t trained, trained_before;  // steps that trained: all, and before anything changed
  attune::DriftTrigger drift;
  Tally tally;
};
using Store = attune::FlashStore<monitor::Flash, Trainer::State, Inspected, Progress, monitor::Watch>;

enum class During { kLoad, kWork, kSave };

/// All RAM of the device but the stack. Zero before main.
struct Device {
  Trainer trainer;
  union {  // predictions come between two slices of training
    Model::InferenceScratch adapted;
    monitor::Front::InferenceScratch factory;
  } inference;
  Window windows[2];  // one is classified while the other fills
  Inspected inspected;
  Progress progress, saved;
  monitor::Watch watch;
  monitor::Protection protection;
  int filling, samples, classified;  // windows, and samples of the one that fills
  std::uint32_t served;              // ticks
  During during;
  bool training;    // a pass is under way
  int until_reset;  // the next one comes when it has been counted down; 0: none comes
  std::uint64_t longest_slice,
      slices;  // instructions of the longest and all; 0 where the program cannot tell
};
constexpr std::size_t kStack = 3 * 1024;
static_assert(sizeof(Device) + kStack <= 64 * 1024);  // the RAM contract, checked by the compiler

constinit Device device{};
#if ATTUNE_EXAMPLE_CORES == 2
/// An emulated wfe takes as long as hundreds of instructions, so a core that waits looks rarely.
struct EmulatedCore : port::SecondCore {
  static void relax() {
    for (int i = 0; i < 500; ++i) asm volatile("nop");
    port::SecondCore::relax();
  }
};
using Cores = attune::TwoCores<EmulatedCore>;
/// What the cores share beside the trainer and the inspected windows, which core 1 uses during a step.
struct Background {
  attune::Published<Model::Parameters> published;
  const Model::Parameters* taken;  // core 0 predicts with these
  Cores::Flag begun, ended;        // steps: by core 0, by core 1
  std::uint32_t steps;
  Status status;  // of the last one
  bool over;
};
constinit Background background{};
constinit Cores cores{};
constexpr std::size_t kShared = sizeof background + sizeof cores;
const Model::Parameters& parameters() { return *background.taken; }
#else
constexpr std::size_t kShared = 0;
const Model::Parameters& parameters() { return device.trainer.parameters(); }
#endif
monitor::Nonvolatile* nonvolatile;
std::optional<monitor::Machine> machine;  // the world outside of the device
int windows_of_run;
bool on_drift;  // trains in sessions only

// ---- Time ----

void begin_window(int window) {
  device.filling = window;
  device.samples = 0;
  machine->start(window, monitor::drift_at(window, monitor::kWindows));
  device.protection = {};
}

void take_sample() {
  if (device.filling == windows_of_run) return;
  float* const sample = &device.windows[device.filling % 2](device.samples, 0);
  machine->next(sample);
  device.progress.tally.trips += device.protection.trips_on(sample);
  if (++device.samples < monitor::kSamples) return;
  if (device.classified < device.filling) ++nonvolatile->late_windows;
  begin_window(device.filling + 1);
}

/// Serves the ticks since the last call. More than one: all but the last were served late.
void serve_ticks() {
  const std::uint32_t due = port::ticks() - device.served;
  if (due > 1) nonvolatile->late_ticks += due - 1;
  for (std::uint32_t tick = 0; tick < due; ++tick) take_sample();
  device.served += due;
}

void reset_sometime() {
  if (device.until_reset > 0 && --device.until_reset == 0) {
    nonvolatile->window_of_reset = static_cast<std::uint32_t>(device.filling);
    nonvolatile->reset_during = static_cast<std::uint32_t>(device.during);
    port::reset();
  }
}

/// What is called between any two slices of work.
void between_slices() {
  reset_sometime();
  serve_ticks();
}

/// All slices of a computation, and `between` behind each of them.
template <class Slices, class Between>
void run_in_slices(Slices& slices, const Between& between) {
  for (bool more = true; more; between()) {
    port::begin_counting();
    more = slices.advance();
    const std::uint64_t instructions = port::end_counting();
    device.slices += instructions;
    device.longest_slice = std::max(device.longest_slice, instructions);
  }
}

// ---- Work ----

int classify(const Window& window, monitor::Logits& logits) {
  auto prediction = attune::infer_in_slices<Model>(parameters(), window, logits,
                                                   *new (&device.inference.adapted) Model::InferenceScratch);
  run_in_slices(prediction, between_slices);
  return monitor::most_likely(logits);
}

/// The features of a window, and its class, with the parameters of the factory.
int classify_as_factory(const Window& window, monitor::Features& features) {
  using Scratch = monitor::Front::InferenceScratch;
  auto prediction = attune::infer_in_slices<monitor::Front>(monitor::kFrontInFlash, window, features,
                                                            *new (&device.inference.factory) Scratch);
  run_in_slices(prediction, between_slices);
  monitor::Logits logits;
  monitor::Head::InferenceScratch scratch;
  monitor::Head::forward(monitor::kFactory.layer<4>(), features, logits, scratch);
  return monitor::most_likely(logits);
}

/// Between two slices of training: the same, and the prediction for a window that is complete.
void keep_up() {
  between_slices();
  if (device.classified >= device.filling) return;
  const int number = device.classified;
  const Window& window = device.windows[number % 2];
  nonvolatile->windows_in_training += device.training;
  monitor::Logits logits;
  const int adapted = classify(window, logits);
  monitor::Features features;
  const int factory = classify_as_factory(window, features);
  const bool rubs = machine->rubs(number);
  if (!rubs && number % kWindowsOfStep == kInspected) {
    attune::Evaluation<> evaluation;
    static_cast<void>(evaluation.add(logits, machine->condition(number)));
    static_cast<void>(device.progress.drift.add(evaluation.loss(), kDrift));
  }
  if (!rubs) device.progress.tally.add(number, machine->condition(number), adapted, factory);
  const bool noticed = device.watch.notices(features, number % kWindowsOfStep == kInspected);
  if (device.watch.watches()) device.progress.tally.add_watched(rubs, noticed);
  device.classified = number + 1;
}

void wait_until_classified(int window) {
  for (keep_up(); device.classified <= window; keep_up()) port::wait_for_tick(device.served);
}

// One step has the latest window of each condition. The parameters change when `last_with_old` has been
// classified, however fast the processor is.
constexpr int kLabels[kConditions][1] = {{0}, {1}, {2}, {3}};

#if ATTUNE_EXAMPLE_CORES == 2

/// Core 1: a step at a time, in one go.
Status train_at_once() {
  for (int condition = 0; condition < kConditions; ++condition) {
    const auto added = device.trainer.accumulate(device.inspected.window[condition], kLabels[condition]);
    if (!added.ok()) return added.status;
  }
  return device.trainer.update(kOptions).status;
}
void publish() {
  if (Model::Parameters* const place = background.published.place()) {
    *place = device.trainer.parameters();
    background.published.publish();
  }
}
void train_in_background() {
  for (std::uint32_t step = 1;; ++step) {
    (void)background.begun.wait_for(step);
    if (background.over) return;
    background.status = train_at_once();
    publish();
    background.ended.publish(step);
  }
}
void begin_step() { background.begun.publish(++background.steps); }

/// Core 0: a step of core 1.
Status train(int last_with_old) {
  device.training = true;
  begin_step();
  wait_until_classified(last_with_old);
  while (background.ended.value() != background.steps) {  // ticks are served, and windows get late
    port::wait_for_tick(device.served);
    between_slices();
  }
  device.training = false;
  background.taken = &background.published.take();
  return background.status;
}

#else

Status train(int last_with_old) {
  device.training = true;
  for (int condition = 0; condition < kConditions; ++condition) {
    auto pass = device.trainer.accumulate_in_slices(device.inspected.window[condition], kLabels[condition]);
    run_in_slices(pass, keep_up);
    if (!pass.result().ok()) return pass.result().status;
  }
  device.training = false;
  wait_until_classified(last_with_old);
  auto update = device.trainer.update_in_slices(kOptions);
  run_in_slices(update, between_slices);  // no prediction with half of an update
  return update.result().status;
}

#endif

Status run(Store& store, int steps) {
  for (int step = device.progress.step; step < steps; ++step) {
    const int first = step * kWindowsOfStep, inspected = first + kInspected,
              last = first + kWindowsOfStep - 1;
    wait_until_classified(inspected);
    const int condition = machine->condition(inspected);
    const bool is_known = !machine->rubs(inspected);
    if (is_known) {
      device.inspected.window[condition] = device.windows[inspected % 2];
      device.inspected.known[condition] = true;
    }
    if (device.inspected.all_known() && (!on_drift || device.progress.drift.learning())) {
      if (const Status status = train(last); status != Status::kOk) return status;
      ++device.progress.trained;
      if (last < kUnchanged) ++device.progress.trained_before;
    } else {
      wait_until_classified(last);
    }
    if (is_known) {
      if (const Status status = device.watch.learn(condition); status != Status::kOk) return status;
    }
    device.progress.step = step + 1;
    monitor::print_rows(device.progress.tally, last + 1, nonvolatile->rows_printed);
    if (device.progress.step % kStepsOfSave == 0 || device.progress.step == steps) {
      device.saved = device.progress;  // ticks are served meanwhile
      device.during = During::kSave;
      auto save = store.save_in_slices(device.trainer.state(), device.inspected, device.saved, device.watch);
      run_in_slices(save, between_slices);
      device.during = During::kWork;
      if (save.status() != Status::kOk) return save.status();
    }
  }
  return Status::kOk;
}

#if ATTUNE_EXAMPLE_CORES == 2
/// run() on core 0, and training on core 1.
Status run_on_cores(Store& store, int steps) {
  Status status = Status::kOk;
  cores.start();
  publish();
  background.taken = &background.published.take();
  cores.for_each(2, [&](int, int core) {
    if (core == 1) return train_in_background();
    status = run(store, steps);
    background.over = true;
    begin_step();
  });
  return status;
}
#else
Status run_on_cores(Store& store, int steps) { return run(store, steps); }
#endif

/// The trainer, and the window from which it goes on.
Status begin_or_resume(Store& store) {
  const Status status = device.trainer.resume([&](Trainer::State& state) {
    auto load = store.load_in_slices(state, device.inspected, device.progress, device.watch);
    run_in_slices(load, reset_sometime);  // ticks have not begun
    return load.status();
  });
  if (status == Status::kNothingStored) device.trainer.load(monitor::kFactory);
  device.classified = device.progress.step * kWindowsOfStep;
  return status == Status::kNothingStored ? Status::kOk : status;
}

/// After the power came, or a reset: when the next one comes. All of them come, spread over the run.
void arm_reset(int resets) {
  const auto done = static_cast<int>(port::reset_count());
  if (done == 0) *nonvolatile = {};
  if (done >= resets) return;
  constexpr int kCalls = 100;  // of reset_sometime() for a window; there are more
  const float longest = static_cast<float>(kCalls * windows_of_run) / static_cast<float>(resets);
  device.until_reset = 1 + static_cast<int>(attune::Rng(port::reset_count()).uniform(0.0f, longest));
}

void tell_reset(int resets) {
  if (port::reset_count() == 0) return;
  const auto during = static_cast<During>(nonvolatile->reset_during);
  if (during == During::kLoad) port::print('\n');  // the line that it cut short
  port::print("  reset ", port::reset_count(), " of ", resets,
              during == During::kLoad ? " while the state was loaded" : " in window ");
  if (during != During::kLoad) port::print(nonvolatile->window_of_reset);
  if (during == During::kSave) port::print(", in a save");
}

}  // namespace

int main() {
  constexpr int kSteps = monitor::kWindows / kWindowsOfStep;
  const int steps = std::clamp(port::argument("--steps", kSteps), 1, kSteps);
  const int resets = std::max(port::argument("--resets", 0), 0);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  windows_of_run = steps * kWindowsOfStep;
  on_drift = port::argument("--learn", 0) > 0;
  machine.emplace(monitor::kInTheField + seed);
  if (port::argument("--unseen", 0) > 0) machine->rub_from(windows_of_run / 2);
  nonvolatile = monitor::map_nonvolatile();
  if (nonvolatile == nullptr) {
    port::print("no temporary file for data that survives a reset\n");
    return 1;
  }
  arm_reset(resets);
  if (port::reset_count() == 0) monitor::print_title(windows_of_run);

  const std::size_t heap_calls_before = port::heap_calls();
  port::paint_stack();
  monitor::Flash flash(nonvolatile->flash);
  Store store(flash);
  tell_reset(resets);
  Status status = begin_or_resume(store);
  if (status == Status::kOk) {
    if (port::reset_count() > 0) port::print("; goes on from window ", device.classified, '\n');
    device.during = During::kWork;
    begin_window(device.classified);
    port::start_ticks(monitor::kHertz);
    status = run_on_cores(store, steps);
  }
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  if (status != Status::kOk) {
    port::print("stopped: ", attune::message(status), '\n');
    return 1;
  }

  const Tally& tally = device.progress.tally;
  monitor::print(tally);
  terminal::print_memory("training", Trainer::memory(attune::Feeding::kOneByOne));
  terminal::print_memory("inference, parameters included", attune::inference_memory<Model>());
  port::print("RAM of both, of samples and of counters: ", sizeof(Device) + kShared, " bytes; stack ", stack, '\n');
#if ATTUNE_EXAMPLE_CORES == 2
  port::print("stack of core 1: ", port::SecondCore::stack_high_water(), '\n');
#endif
  port::print(windows_of_run * monitor::kSamples, " ticks of ", 1000 / monitor::kHertz, " ms",
              port::ticks_interrupt() ? "" : ", simulated: time stands still while the program computes",
              "; ", nonvolatile->late_ticks, " served late\n", nonvolatile->windows_in_training,
              " windows classified during steps of training, ", nonvolatile->late_windows,
              " too late\n");
  const int before = std::min(steps, kUnchanged / kWindowsOfStep);
  port::print("trained in ", device.progress.trained_before, " of ", before,
              " steps before the machine changed, and in ",
              device.progress.trained - device.progress.trained_before, " of ", steps - before, " after\n");
  port::print("result example=monitor target=", port::name(), " steps=", steps,
              " trained_steps=", device.progress.trained, " trained_before=", device.progress.trained_before,
              " sessions=", device.progress.drift.sessions(),
              " accuracy=", port::fixed(tally.accuracy(tally.right), 4),
              " factory_accuracy=", port::fixed(tally.accuracy(tally.right_in_factory), 4),
              " late_ticks=", nonvolatile->late_ticks, " late_windows=", nonvolatile->late_windows);
  terminal::print_instructions("longest_slice", device.longest_slice);
  terminal::print_instructions("slices", device.slices);
  port::print(" watched=", tally.watched, " false_alarms=", tally.false_alarms, " rubs=", tally.rubs,
              " rubs_noticed=", tally.rubs_noticed);
  port::print(" resets=", port::reset_count(), " ram_bytes=", sizeof(Device) + kShared, " stack_bytes=", stack,
              " heap_calls=", heap_calls,
              " parameters_hash=", port::hex8(attune::hash_bits(device.trainer.parameters())), '\n');
  return 0;
}

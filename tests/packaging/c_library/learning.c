/* Learning without labels, distances and replay: the calls of reference.cpp, and misuse. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "last.h"
#ifdef EVERY_LIBRARY
#include "padded.h"
#endif

void print_bits(const char* name, const float* numbers, int count);
void print_check(const char* name, int holds);
void learn(void);

enum { kExamples = 60, kTakes = 24 };

static float x[LAST_INPUTS], y[LAST_OUTPUTS], before[LAST_OUTPUTS];
static uint32_t drawn;
static void draw(void) {
  for (int i = 0; i < LAST_INPUTS; ++i) {
    drawn = drawn * 1664525u + 1013904223u;
    x[i] = (float)(drawn >> 16) / 16384.0f - 2.0f;
  }
}
static int likeliest(void) {
  int best = 0;
  for (int i = 1; i < LAST_OUTPUTS; ++i) {
    if (y[i] > y[best]) best = i;
  }
  return best;
}

static void learn_takes(last_model* model) {
  static unsigned char sums[LAST_SUMS], again[LAST_SUMS];
  last_learning learning;
  int held = 1;
  print_check("no takes", last_learn_takes(model, NULL, &learning) == LAST_NOTHING_STORED);
  print_check("no examples to fit to", last_fit_distance(model) == LAST_NO_TARGETS);
  drawn = 1;
  for (int i = 0; i < kExamples; ++i) {
    draw();
    held = held && last_predict(model, x, y) == LAST_OK;
    const int label = likeliest();
    held = held && last_add_example(model, x, &label) == LAST_OK;
  }
  print_check("adds examples", held);
  print_check("saves sums", last_save_sums(model, sums, sizeof sums) == LAST_OK);
  const int none = 3;
  print_check("an invalid class", last_add_example(model, x, &none) == LAST_INVALID_TARGET);
  print_check("sums of another size", last_load_sums(model, sums, sizeof sums - 1) == LAST_INVALID_LENGTH &&
                                          last_save_sums(model, again, sizeof sums + 1) == LAST_INVALID_LENGTH);
  last_add_example(model, x, &(const int){0});
  print_check("loads sums", last_load_sums(model, sums, sizeof sums) == LAST_OK && last_save_sums(model, again, sizeof again) == LAST_OK &&
                                memcmp(sums, again, sizeof sums) == 0);
  held = 1;
  for (int i = 0; i < kTakes; ++i) {
    draw();
    held = held && last_add_take(model, x, i == 0 ? 2 : -1) == LAST_OK;
  }
  print_check("adds takes", held);
  print_check("a take too many", last_add_take(model, x, -1) == LAST_FULL_BATCH);
  print_check("an invalid label", last_add_take(model, x, 3) == LAST_INVALID_TARGET && last_add_take(model, x, -2) == LAST_INVALID_TARGET);
  last_predict(model, x, before);
  const float wrong[LAST_OUTPUTS] = {0.5f, 0.5f, 0.5f};
  print_check("an invalid prior", last_learn_takes(model, wrong, NULL) == LAST_INVALID_CLASS_WEIGHT && last_predict(model, x, y) == LAST_OK &&
                                          memcmp(before, y, sizeof y) == 0);
  const float rare[LAST_OUTPUTS] = {0.98f, 0.01f, 0.01f};
  print_check("an objection leaves the base", last_learn_takes(model, rare, &learning) == LAST_OK && learning.objection == LAST_IMBALANCE &&
                                                  learning.rounds == 0 && last_predict(model, x, y) == LAST_OK && memcmp(before, y, sizeof y) == 0);
  print_check("learns from takes", last_learn_takes(model, NULL, &learning) == LAST_OK && learning.objection == 0 && learning.rounds == 4);
  print_check("says how", learning.clear > 0.4f && learning.clear < 0.95f && learning.agreement > 0.8f && learning.imbalance < 0.25f);
  last_predict(model, x, y);
  print_bits("unlabeled", y, LAST_OUTPUTS);
  print_check("and changes the head", memcmp(before, y, sizeof y) != 0);
  last_accumulate_in_slices(model, x, &none);
  const int label = 1;
  last_accumulate_in_slices(model, x, &label);
  print_check("not within a pass", last_learn_takes(model, NULL, NULL) == LAST_UNDER_WAY);
  last_discard(model);
  print_check("takes are forgotten", last_forget_takes(model) == LAST_OK && last_learn_takes(model, NULL, NULL) == LAST_NOTHING_STORED);
}

static void find_anomalies(last_model* model) {
  float distances[2], threshold, far[LAST_INPUTS];
  print_check("a distance before the fit", last_distance(model, x, &distances[0]) == LAST_OK && distances[0] > 1e30f);
  print_check("a threshold of nothing", last_threshold(model, &threshold) == LAST_OK && threshold > 1e30f);
  print_check("fits distances", last_fit_distance(model) == LAST_OK);
  drawn = 7;
  int held = 1;
  for (int i = 0; i < kExamples; ++i) {
    draw();
    held = held && last_distance(model, x, &distances[0]) == LAST_OK && last_add_usual(model, distances[0]) == LAST_OK;
  }
  for (int i = 0; i < LAST_INPUTS; ++i) far[i] = -8.0f;
  last_distance(model, far, &distances[1]);
  print_check("notices", held && last_threshold(model, &threshold) == LAST_OK && distances[1] > threshold);
  print_bits("distances", distances, 2);
  print_check("a distance that is not finite", last_add_usual(model, distances[0] / 0.0f) == LAST_NOT_FINITE);
  print_check("forgets", last_forget_usual(model) == LAST_OK && last_threshold(model, &threshold) == LAST_OK && threshold > 1e30f);
}

static void replay(last_model* model) {
  print_check("nothing to replay", last_replay(model, 1, 1) == LAST_NOTHING_STORED);
  drawn = 3;
  last_start(model, 4);
  int held = 1;
  for (int i = 0; i < 12; ++i) {
    const int label = i % 3;
    draw();
    held = held && last_remember(model, x, &label) == LAST_OK;
  }
  const int none = -1, label = 1;
  print_check("remembers", held && last_remember(model, x, &none) == LAST_INVALID_TARGET);
  for (int step = 0; step < 3; ++step) {
    held = held && last_accumulate(model, x, &label, NULL) == LAST_OK && last_replay(model, 2, (uint64_t)step) == LAST_OK;
    held = held && last_replay(model, 1, 0) == LAST_FULL_BATCH && last_update(model, 0.1f) == LAST_OK;
  }
  print_check("replays", held);
  last_predict(model, x, y);
  print_bits("replayed", y, LAST_OUTPUTS);
  print_check("forgets examples", last_forget_examples(model) == LAST_OK && last_replay(model, 1, 1) == LAST_NOTHING_STORED);
}

static void misuse(last_model* model) {
  static _Alignas(16) unsigned char numbers[sizeof x + 16];
  const float* const odd = (const float*)(const void*)(numbers + 1);
  const int label = 1;
  print_check("null pointers of learning", last_add_example(NULL, x, &label) == LAST_NULL_ARGUMENT && last_add_example(model, x, NULL) == LAST_NULL_ARGUMENT &&
                                               last_add_take(model, NULL, -1) == LAST_NULL_ARGUMENT && last_save_sums(model, NULL, 0) == LAST_NULL_ARGUMENT &&
                                               last_distance(model, x, NULL) == LAST_NULL_ARGUMENT && last_threshold(model, NULL) == LAST_NULL_ARGUMENT &&
                                               last_remember(model, NULL, &label) == LAST_NULL_ARGUMENT && last_replay(NULL, 1, 1) == LAST_NULL_ARGUMENT);
  print_check("misaligned pointers of learning", last_add_example(model, odd, &label) == LAST_MISALIGNED && last_add_take(model, odd, -1) == LAST_MISALIGNED &&
                                                     last_learn_takes(model, odd, NULL) == LAST_MISALIGNED && last_distance(model, odd, y) == LAST_MISALIGNED &&
                                                     last_remember(model, odd, &label) == LAST_MISALIGNED);
  last_forget_takes(model);
  last_add_take(model, x, -1);
  last_learning learning;
  print_check("one take is no voice", last_learn_takes(model, NULL, &learning) == LAST_OK && learning.objection != 0);
}

#ifdef EVERY_LIBRARY
/* Examples with lengths, of a model whose adapters train. */
static void learn_with_lengths(void) {
  float distance = 0;
  const int label = 2;
  padded_model* model = padded_own();
  padded_start(model, 7);
  drawn = 5;
  int held = 1;
  for (int i = 0; i < kExamples; ++i) {
    const int class_of = i % 3;
    draw();
    held = held && padded_add_example(model, x, 1 + i % 4, &class_of) == PADDED_OK && padded_remember(model, x, 1 + i % 4, &class_of) == PADDED_OK;
  }
  print_check("examples with lengths", held && padded_remember(model, x, 5, &label) == PADDED_INVALID_LENGTH &&
                                           padded_distance(model, x, 0, &distance) == PADDED_INVALID_LENGTH);
  held = padded_fit_distance(model) == PADDED_OK && padded_distance(model, x, 2, &distance) == PADDED_OK && distance >= 0 && distance < 1e30f;
  print_check("are replayed", held && padded_accumulate(model, x, 2, &label, NULL) == PADDED_OK && padded_replay(model, 1, 1) == PADDED_OK &&
                                  padded_update(model, 0.01f) == PADDED_OK);
}
#endif

void learn(void) {
  last_model* model = last_own();
  last_start(model, 4);
  learn_takes(model);
  find_anomalies(model);
  replay(model);
  misuse(model);
#ifdef EVERY_LIBRARY
  learn_with_lengths();
#endif
}

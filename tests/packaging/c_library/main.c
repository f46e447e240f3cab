/* A program in C11 on several models: the bits that the same calls have in C++ (reference.cpp), and misuse. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "last.h"
#include "tuned.h"
#ifdef EVERY_LIBRARY
#include "backward.h"
#include "biases.h"
#include "brief.h"
#include "copied.h"
#include "drawn.h"
#include "eight.h"
#include "own.h"
#include "own_eight.h"
#include "own_packed.h"
#include "padded.h"
#include "reader.h"
#include "text.h"
#endif

void print_bits(const char* name, const float* numbers, int count);
void print_check(const char* name, int holds);

/* store.c, learning.c */
void store(void);
void learn(void);
/* neighbors.cpp */
void write_status(void* record);
unsigned long size_of_status_in_cpp(void);

static float x[TUNED_INPUTS], other[TUNED_INPUTS];

static void fill(void) {
  for (int i = 0; i < TUNED_INPUTS; ++i) {
    x[i] = 0.125f * (float)(i % 5) - 0.25f;
    other[i] = 0.0625f * (float)(i % 7) - 0.125f;
  }
}

static void train(void) {
  const int first = 2, second = 0;
  float y[TUNED_OUTPUTS], loss = 0;
  tuned_model* model = tuned_own();
  tuned_start(model, 7);
  for (int step = 0; step < 5; ++step) {
    tuned_accumulate(model, x, &first, &loss);
    tuned_accumulate(model, other, &second, NULL);
    tuned_update(model, 0.02f);
  }
  tuned_predict(model, x, y);
  print_bits("tuned", y, TUNED_OUTPUTS);
  print_bits("loss", &loss, 1);

  /* The same by calls that update by themselves. */
  float learned[TUNED_OUTPUTS];
  tuned_status status = tuned_start(model, 7);
  for (int i = 0; i < 5 * TUNED_BATCH && status == TUNED_OK; ++i) {
    status = tuned_learn(model, i % 2 == 0 ? x : other, i % 2 == 0 ? &first : &second, 0.02f, &loss);
  }
  print_check("learns by single calls", status == TUNED_OK && tuned_predict(model, x, learned) == TUNED_OK);
  print_check("learns the same by them", memcmp(y, learned, sizeof y) == 0 && tuned_update(model, 0.02f) == TUNED_INCOMPLETE_BATCH);

  /* The same in slices, in memory of the caller's, and on from a saved state. */
  static _Alignas(TUNED_ALIGNMENT) unsigned char memory[TUNED_RAM];
  static unsigned char state[TUNED_STATE];
  float sliced[TUNED_OUTPUTS];
  int slices = 0;
  tuned_model* second_model = tuned_in(memory, sizeof memory);
  tuned_start(second_model, 7);
  for (int step = 0; step < 5; ++step) {
    if (step == 3) {
      print_check("saves", tuned_save(second_model, state, sizeof state) == TUNED_OK);
      second_model = tuned_in(memory, sizeof memory);
      print_check("resumes", tuned_resume(second_model, state, sizeof state) == TUNED_OK);
    }
    tuned_accumulate_in_slices(second_model, x, &first);
    while (tuned_slice(second_model) == TUNED_UNDER_WAY) ++slices;
    tuned_accumulate_in_slices(second_model, other, &second);
    while (tuned_slice(second_model) == TUNED_UNDER_WAY) ++slices;
    tuned_update_in_slices(second_model, 0.02f);
    while (tuned_slice(second_model) == TUNED_UNDER_WAY) ++slices;
  }
  print_check("predicts behind slices", tuned_predict(second_model, x, sliced) == TUNED_OK);
  print_check("has the bits of one go", memcmp(y, sliced, sizeof y) == 0);
  print_check("was in slices", slices > 0);
}

static void predict_in_slices(void) {
  const int label = 1;
  float whole[TUNED_OUTPUTS], y[TUNED_OUTPUTS];
  int slices = 0, of_training = 0;
  tuned_model* model = tuned_own();
  tuned_start(model, 7);
  tuned_accumulate(model, x, &label, NULL);
  tuned_update(model, 0.02f);
  tuned_predict(model, x, whole);
  print_check("a prediction begins", tuned_predict_in_slices(model, x, y) == TUNED_OK);
  print_check("a second one does not", tuned_predict_in_slices(model, x, y) == TUNED_UNDER_WAY);
  print_check("no update within it", tuned_update(model, 0.02f) == TUNED_UNDER_WAY && tuned_update_in_slices(model, 0.02f) == TUNED_UNDER_WAY);
  /* Slice by slice beside those of a sequence in training. */
  tuned_accumulate_in_slices(model, other, &label);
  tuned_status status;
  while ((status = tuned_predict_slice(model)) == TUNED_UNDER_WAY) {
    ++slices;
    of_training += tuned_slice(model) == TUNED_UNDER_WAY;
  }
  print_check("a prediction ends", status == TUNED_OK && slices > 1 && of_training > 1);
  print_check("with the bits of one go", memcmp(y, whole, sizeof y) == 0);
  while (tuned_slice(model) == TUNED_UNDER_WAY) {
  }
  print_check("and training continues", tuned_update_in_slices(model, 0.02f) == TUNED_OK);
  print_check("no prediction within an update", tuned_predict_in_slices(model, x, y) == TUNED_UNDER_WAY);
  tuned_start(model, 7);
  print_check("a start ends an update", tuned_slice(model) == TUNED_OK && tuned_accumulate_in_slices(model, x, &label) == TUNED_OK);
  tuned_slice(model);
  tuned_predict_in_slices(model, x, y);
  tuned_start(model, 7);
  print_check("a start ends a sequence", tuned_slice(model) == TUNED_OK && tuned_update(model, 0.02f) == TUNED_INCOMPLETE_BATCH);
  print_check("a start ends a prediction", tuned_predict_slice(model) == TUNED_NOT_INITIALIZED);
  tuned_predict(model, x, y);
  tuned_start(model, 7);
  tuned_predict(model, x, whole);
  print_check("and begins anew", memcmp(y, whole, sizeof y) == 0);
}

static void train_head(void) {
  const int first = 2;
  float y[LAST_OUTPUTS];
  last_model* head = last_own();
  last_start(head, 4);
  for (int step = 0; step < 5; ++step) {
    last_accumulate(head, x, &first, NULL);
    last_update(head, 0.1f);
  }
  last_predict(head, x, y);
  print_bits("head", y, LAST_OUTPUTS);
}

#ifdef EVERY_LIBRARY
static void train_other_parts(void) {
  const int first = 2;
  float y[COPIED_OUTPUTS];
  copied_model* all = copied_own();
  copied_start(all, 0);
  copied_accumulate(all, x, &first, NULL);
  copied_update(all, 0.1f);
  copied_predict(all, x, y);
  print_bits("copied", y, COPIED_OUTPUTS);
  float learned[BACKWARD_OUTPUTS];
  backward_model* least = backward_own();
  print_check("nothing is learned before a start", backward_learn(least, x, &first, 0.1f, NULL) == BACKWARD_NOT_INITIALIZED);
  backward_start(least, 0);
  print_check("learns without gradients", backward_learn(least, x, &first, 0.1f, NULL) == BACKWARD_OK && BACKWARD_RAM < COPIED_RAM);
  backward_predict(least, x, learned);
  print_check("learns the same without gradients", memcmp(y, learned, sizeof y) == 0 && BACKWARD_BATCH == 1);
  biases_model* few = biases_own();
  biases_start(few, 3);
  biases_accumulate(few, x, &first, NULL);
  biases_update(few, 0.01f);
  biases_predict(few, x, y);
  print_bits("biases", y, BIASES_OUTPUTS);
  print_check("a head alone takes less state", LAST_STATE < BIASES_STATE && BIASES_STATE < COPIED_STATE);
  drawn_model* fresh = drawn_own();
  drawn_start(fresh, 11);
  drawn_predict(fresh, x, y);
  print_bits("drawn", y, DRAWN_OUTPUTS);
}

/* A base that attune wrote under its own names, in floats and in 8 bits. */
static void own_files(void) {
  const int label = 2;
  float expected[READER_OUTPUTS], y[OWN_OUTPUTS], trained[OWN_OUTPUTS];
  reader_predict(reader_own(), x, expected);
  own_predict(own_own(), x, y);
  print_check("floats of a file by attune are those of PyTorch's", memcmp(y, expected, sizeof y) == 0);
  eight_predict(eight_own(), x, expected);
  own_eight_model* eight = own_eight_own();
  own_eight_start(eight, 1);
  own_eight_accumulate(eight, x, &label, NULL);
  own_eight_update(eight, 0.1f);
  own_eight_predict(eight, x, trained);
  print_check("a head learns on 8 bits of a file by attune", memcmp(trained, expected, sizeof trained) != 0);
  own_packed_model* packed = own_packed_own();
  own_packed_start(packed, 1);
  own_packed_predict(packed, x, y);
  float far = 0;
  for (int i = 0; i < OWN_OUTPUTS; ++i) {
    const float distance = y[i] > expected[i] ? y[i] - expected[i] : expected[i] - y[i];
    if (distance > far) far = distance;
  }
  print_check("adapters beside packed integers begin near", far < 0.1f);
}

static void lengths(void) {
  const int label = 2, third = PADDED_INPUTS / PADDED_TOKENS;
  float y[BRIEF_OUTPUTS], again[BRIEF_OUTPUTS], before[PADDED_OUTPUTS], padding[READER_INPUTS], loss = 0;
  const unsigned not_a_number = 0x7fc00000;
  memcpy(padding, x, sizeof padding);
  for (int i = 2 * third; i < READER_INPUTS; ++i) memcpy(&padding[i], &not_a_number, sizeof not_a_number);
  brief_model* reader = brief_own();
  print_check("two tokens", brief_predict(reader, x, 2, y) == BRIEF_OK);
  print_bits("brief", y, BRIEF_OUTPUTS);
  print_check("padding without influence", brief_predict(reader, padding, 2, again) == BRIEF_OK && memcmp(y, again, sizeof y) == 0);
  print_check("another length is another answer", brief_predict(reader, x, 3, again) == BRIEF_OK && memcmp(y, again, sizeof y) != 0);
  print_check("the whole length", brief_predict(reader, x, BRIEF_TOKENS, again) == BRIEF_OK);
  print_bits("whole", again, BRIEF_OUTPUTS);
  memcpy(again, y, sizeof y);
  print_check("no tokens", brief_predict(reader, x, 0, again) == BRIEF_INVALID_LENGTH);
  print_check("too many tokens", brief_predict(reader, x, BRIEF_TOKENS + 1, again) == BRIEF_INVALID_LENGTH);
  print_check("and nothing is written", memcmp(y, again, sizeof y) == 0);

  padded_model* model = padded_own();
  padded_start(model, 7);
  print_check("no tokens to train", padded_accumulate(model, x, 0, &label, &loss) == PADDED_INVALID_LENGTH);
  print_check("no tokens in slices", padded_accumulate_in_slices(model, x, -1, &label) == PADDED_INVALID_LENGTH);
  print_check("and there is no pass", padded_slice(model) == PADDED_OK && padded_update(model, 0.02f) == PADDED_INCOMPLETE_BATCH);
  for (int step = 0; step < 3; ++step) {
    padded_accumulate(model, padding, 2, &label, &loss);
    padded_update(model, 0.02f);
  }
  padded_predict(model, padding, 2, before);
  print_bits("padded", before, PADDED_OUTPUTS);
  print_bits("padded_loss", &loss, 1);
  padded_start(model, 7);
  for (int step = 0; step < 3; ++step) {
    padded_accumulate_in_slices(model, padding, 2, &label);
    while (padded_slice(model) == PADDED_UNDER_WAY) {
    }
    padded_update(model, 0.02f);
  }
  padded_predict(model, padding, 2, y);
  print_check("lengths in slices", memcmp(before, y, sizeof before) == 0);
}

static void stream(void) {
  const int ids[TEXT_INPUTS] = {1, 8, 0, 3};
  float whole[TEXT_OUTPUTS], row[TEXT_ROW];
  int same = 1;
  text_model* model = text_own();
  text_start(model, 5);
  text_predict(model, ids, whole);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < TEXT_INPUTS; ++i) {
      same = same && text_token(model, &ids[i], row) == TEXT_OK;
      same = same && memcmp(row, whole + i * TEXT_ROW, sizeof row) == 0;
    }
    print_check("a full cache is told", text_token(model, &ids[0], row) == TEXT_CACHE_FULL);
    text_restart(model);
  }
  print_check("tokens have the bits of the sequence", same);
  const int none = 9;
  print_check("an invalid token", text_token(model, &none, row) == TEXT_INVALID_TOKEN);
}

static void infer(void) {
  float y[READER_OUTPUTS];
  reader_predict(reader_own(), x, y);
  print_bits("reader", y, READER_OUTPUTS);
  float sliced[READER_OUTPUTS];
  reader_model* reader = reader_own();
  reader_predict_in_slices(reader, x, sliced);
  print_check("its memory is in use", reader_predict(reader, x, y) == READER_UNDER_WAY);
  while (reader_predict_slice(reader) == READER_UNDER_WAY) {
  }
  print_check("a reader in slices", memcmp(y, sliced, sizeof y) == 0);
  eight_predict(eight_own(), x, y);
  print_check("eight bits are near", y[0] == y[0]);
}
#endif

static void share_a_status(void) {
  struct {
    tuned_status status;
    unsigned char next;
  } records[2] = {{TUNED_OK, 7}, {TUNED_OK, 7}};
  write_status(&records[0]);
  print_check("a status has one size in every module", sizeof(tuned_status) == size_of_status_in_cpp());
  print_check("a status from another module", records[0].status == TUNED_NULL_ARGUMENT && records[0].next == 9);
  print_check("its neighbor is as it was", records[1].status == TUNED_OK && records[1].next == 7);
}

/* Whether a message names no function, or one of C. */
static int is_in_words_of_c(const char* text) {
  const char* call = strchr(text, '(');
  while (call != NULL && call[1] == ')') {
    const char* name = call;
    while (name > text && name[-1] != ' ') --name;
    if (strncmp(name, "tuned_", 6) != 0) return 0;
    call = strchr(call + 1, '(');
  }
  return 1;
}

static void misalign(void) {
  static _Alignas(TUNED_ALIGNMENT) unsigned char memory[TUNED_RAM + TUNED_ALIGNMENT];
  static _Alignas(16) unsigned char numbers[sizeof x + 16], state[TUNED_STATE + 1];
  const int label = 1;
  float y[TUNED_OUTPUTS], loss;
  int refused = 0;
  tuned_model* model = tuned_in(memory, sizeof memory);
  tuned_start(model, 1);
  for (int by = 1; by < 4; ++by) {
    const void* const in = numbers + by;
    void* const out = numbers + by;
    refused += tuned_predict(model, in, y) == TUNED_MISALIGNED;
    refused += tuned_predict(model, x, out) == TUNED_MISALIGNED;
    refused += tuned_predict_in_slices(model, in, y) == TUNED_MISALIGNED;
    refused += tuned_predict_in_slices(model, x, out) == TUNED_MISALIGNED;
    refused += tuned_accumulate(model, in, &label, &loss) == TUNED_MISALIGNED;
    refused += tuned_accumulate(model, x, in, &loss) == TUNED_MISALIGNED;
    refused += tuned_accumulate(model, x, &label, out) == TUNED_MISALIGNED;
    refused += tuned_accumulate_in_slices(model, in, &label) == TUNED_MISALIGNED;
    refused += tuned_accumulate_in_slices(model, x, in) == TUNED_MISALIGNED;
    refused += tuned_save_to_flash(model, in) == TUNED_MISALIGNED;
    refused += tuned_update((tuned_model*)(void*)(memory + by), 0.1f) == TUNED_MISALIGNED;
  }
  print_check("pointers that are not aligned", refused == 33);
  print_check("and nothing has begun", tuned_slice(model) == TUNED_OK && tuned_update(model, 0.1f) == TUNED_INCOMPLETE_BATCH);
  print_check("bytes of a state may lie anywhere", tuned_save(model, state + 1, TUNED_STATE) == TUNED_OK &&
                                                       tuned_resume(model, state + 1, TUNED_STATE) == TUNED_OK &&
                                                       tuned_load(model, state + 1, TUNED_STATE) == TUNED_OK);
}

static void misuse(void) {
  static _Alignas(TUNED_ALIGNMENT) unsigned char memory[TUNED_RAM + TUNED_ALIGNMENT];
  static unsigned char state[TUNED_STATE];
  const int label = 1, no_label = 3;
  float y[TUNED_OUTPUTS] = {1, 2, 3};
  print_check("memory that is too small", tuned_in(memory, TUNED_RAM - 1) == NULL);
  print_check("memory that is not aligned", tuned_in(memory + 1, TUNED_RAM) == NULL);
  print_check("no memory", tuned_in(NULL, TUNED_RAM) == NULL);
  tuned_model* model = tuned_in(memory, sizeof memory);
  print_check("predict before start", tuned_predict(model, x, y) == TUNED_NOT_INITIALIZED);
  print_check("accumulate before start", tuned_accumulate(model, x, &label, NULL) == TUNED_NOT_INITIALIZED);
  print_check("update before start", tuned_update(model, 0.1f) == TUNED_NOT_INITIALIZED);
  print_check("save before start", tuned_save(model, state, sizeof state) == TUNED_NOT_INITIALIZED);
  print_check("a slice of nothing", tuned_slice(model) == TUNED_OK);
  tuned_start(model, 1);
  print_check("update without sequences", tuned_update(model, 0.1f) == TUNED_INCOMPLETE_BATCH);
  print_check("an invalid class", tuned_accumulate(model, x, &no_label, NULL) == TUNED_INVALID_TARGET);
  print_check("null model", tuned_predict(NULL, x, y) == TUNED_NULL_ARGUMENT);
  print_check("null input", tuned_predict(model, NULL, y) == TUNED_NULL_ARGUMENT);
  print_check("null target", tuned_accumulate(model, x, NULL, NULL) == TUNED_NULL_ARGUMENT);
  print_check("a short buffer", tuned_save(model, state, sizeof state - 1) == TUNED_INVALID_LENGTH);
  print_check("bytes of nobody", tuned_resume(model, state, sizeof state) == TUNED_OTHER_STATE);
  print_check("and the model is as it was", tuned_predict(model, x, y) == TUNED_OK);
  tuned_accumulate_in_slices(model, x, &label);
  print_check("two passes at once", tuned_accumulate_in_slices(model, x, &label) == TUNED_UNDER_WAY);
  print_check("predict within a pass", tuned_predict(model, x, y) == TUNED_UNDER_WAY);
  print_check("resume within a pass", tuned_resume(model, state, sizeof state) == TUNED_UNDER_WAY);
  print_check("discard", tuned_discard(model) == TUNED_OK && tuned_predict(model, x, y) == TUNED_OK);
  print_check("a full batch", tuned_accumulate(model, x, &label, NULL) == TUNED_OK &&
                                  tuned_accumulate(model, x, &label, NULL) == TUNED_OK &&
                                  tuned_accumulate(model, x, &label, NULL) == TUNED_FULL_BATCH);
  tuned_update_in_slices(model, 0.01f);
  int of_slice = tuned_slice(model);  // until parameters change, a state can be saved
  while (of_slice == TUNED_UNDER_WAY && tuned_save(model, state, sizeof state) == TUNED_OK) of_slice = tuned_slice(model);
  const int half = of_slice == TUNED_UNDER_WAY;
  print_check("save within an update", !half || tuned_save(model, state, sizeof state) == TUNED_UNDER_WAY);
  print_check("discard within an update", !half || tuned_discard(model) == TUNED_UNDER_WAY);
  while (tuned_slice(model) == TUNED_UNDER_WAY) {
  }
  print_check("a learning rate below zero",
              tuned_accumulate(model, x, &label, NULL) == TUNED_OK && tuned_update(model, -1) == TUNED_INVALID_LEARNING_RATE);
  int in_c = 1;
  for (int status = -1; status < 257; ++status) in_c = in_c && is_in_words_of_c(tuned_message(status));
  print_check("messages name functions of C", in_c && strstr(tuned_message(TUNED_NOT_INITIALIZED), "tuned_start()") != NULL);
  print_check("a number that is no status", strcmp(tuned_message(256), tuned_message(200)) == 0 && strcmp(tuned_message(-1), tuned_message(200)) == 0);
  print_check("texts", strcmp(tuned_message(TUNED_OK), "ok") == 0 && strlen(tuned_message(TUNED_NULL_ARGUMENT)) > 5);
}

int main(void) {
  fill();
  train();
  train_head();
#ifdef EVERY_LIBRARY
  infer();
  train_other_parts();
  own_files();
  lengths();
  stream();
#endif
  predict_in_slices();
  store();
  learn();
  share_a_status();
  misalign();
  misuse();
  return 0;
}

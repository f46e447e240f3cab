/* The store of a library, over a driver in C. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tuned.h"

void print_check(const char* name, int holds);
void store(void);

/* The driver of a flash in RAM. */
#define PAGE 256
static struct {
  unsigned char bytes[12 * PAGE];
  int calls_left; /* until the power goes; below zero: it stays */
  int wrong;      /* calls that the header excludes */
} chip;

static int has_power(void) {
  if (chip.calls_left < 0) return 1;
  return chip.calls_left != 0 && chip.calls_left-- > 0;
}
static tuned_status chip_read(void* context, uint32_t at, void* to, size_t bytes) {
  chip.wrong += context != &chip || at + bytes > sizeof chip.bytes;
  if (!has_power()) return TUNED_FLASH_FAULT;
  memcpy(to, chip.bytes + at, bytes);
  return TUNED_OK;
}
static tuned_status chip_program(void* context, uint32_t at, const void* from, size_t bytes) {
  chip.wrong += context != &chip || at % 8 != 0 || bytes % 8 != 0 || at + bytes > sizeof chip.bytes;
  if (!has_power()) return TUNED_FLASH_FAULT;
  for (size_t i = 0; i < bytes; ++i) chip.wrong += chip.bytes[at + i] != 0xFF;
  memcpy(chip.bytes + at, from, bytes);
  return TUNED_OK;
}
static tuned_status chip_erase(void* context, uint32_t at) {
  chip.wrong += context != &chip || at % PAGE != 0 || at >= sizeof chip.bytes;
  if (!has_power()) return TUNED_FLASH_FAULT;
  memset(chip.bytes + at, 0xFF, PAGE);
  return TUNED_OK;
}
static tuned_status chip_sync(void* context) {
  chip.wrong += context != &chip;
  return has_power() ? TUNED_OK : TUNED_FLASH_FAULT;
}

static void save_in_slices(tuned_model* model, const tuned_flash* flash, const float* x) {
  static unsigned char before[TUNED_STATE], again[TUNED_STATE];
  const int label = 2;
  int slices = 0;
  tuned_start(model, 7);
  tuned_accumulate(model, x, &label, NULL);
  print_check("a save in slices begins", tuned_save_to_flash_in_slices(model, flash) == TUNED_OK && tuned_flash_slice(model) == TUNED_UNDER_WAY);
  print_check("no second one, and no update", tuned_save_to_flash(model, flash) == TUNED_UNDER_WAY && tuned_update(model, 0.02f) == TUNED_UNDER_WAY &&
                                                   tuned_update_in_slices(model, 0.02f) == TUNED_UNDER_WAY && tuned_resume_from_flash(model, flash) == TUNED_UNDER_WAY);
  print_check("but a sequence", tuned_accumulate(model, x, &label, NULL) == TUNED_OK);
  tuned_status last;
  while ((last = tuned_flash_slice(model)) == TUNED_UNDER_WAY) ++slices;
  print_check("it ends", last == TUNED_OK && slices > 10 && tuned_update(model, 0.02f) == TUNED_OK);
  tuned_start(model, 7);
  tuned_save(model, before, sizeof before);
  tuned_start(model, 9);
  print_check("with the state from its begin", tuned_resume_from_flash(model, flash) == TUNED_OK &&
                                                   tuned_save(model, again, sizeof again) == TUNED_OK && memcmp(again, before, sizeof again) == 0);
  tuned_start(model, 9);
  tuned_save_to_flash_in_slices(model, flash);
  tuned_flash_slice(model);
  tuned_start(model, 9);
  print_check("a start ends a save", tuned_flash_slice(model) == TUNED_NOT_INITIALIZED && tuned_resume_from_flash(model, flash) == TUNED_OK && tuned_save(model, again, sizeof again) == TUNED_OK &&
                                         memcmp(again, before, sizeof again) == 0);
}

void store(void) {
  static const tuned_flash flash = {&chip, chip_read, chip_program, chip_erase, chip_sync};
  static unsigned char before[TUNED_STATE], state[TUNED_STATE], again[TUNED_STATE];
  float x[TUNED_INPUTS];
  const int label = 2;
  int held = 1, old = 0, cuts = 0;
  tuned_model* model = tuned_own();
  for (int i = 0; i < TUNED_INPUTS; ++i) x[i] = 0.125f * (float)(i % 5) - 0.25f;
  chip.calls_left = -1;
  memset(chip.bytes, 0xFF, sizeof chip.bytes);
  memset(model, 0, TUNED_RAM);
  print_check("no state before a start", tuned_save_to_flash(model, &flash) == TUNED_NOT_INITIALIZED);
  tuned_start(model, 7);
  print_check("an empty flash", tuned_resume_from_flash(model, &flash) == TUNED_NOTHING_STORED);
  print_check("and the training goes on", tuned_accumulate(model, x, &label, NULL) == TUNED_OK && tuned_update(model, 0.02f) == TUNED_OK);
  tuned_save(model, before, sizeof before);
  print_check("a state goes into the flash", tuned_save_to_flash(model, &flash) == TUNED_OK);
  tuned_start(model, 8);
  print_check("and comes back", tuned_resume_from_flash(model, &flash) == TUNED_OK && tuned_save(model, again, sizeof again) == TUNED_OK &&
                                    memcmp(before, again, sizeof before) == 0);
  tuned_accumulate(model, x, &label, NULL);
  tuned_update(model, 0.02f);
  tuned_save(model, state, sizeof state);
  for (int calls = 0; calls < 4000; calls += 7) { /* the power goes at any call of the driver */
    chip.calls_left = calls;
    const tuned_status saved = tuned_save_to_flash(model, &flash);
    chip.calls_left = -1;
    tuned_start(model, 8);
    held = held && tuned_resume_from_flash(model, &flash) == TUNED_OK && tuned_save(model, again, sizeof again) == TUNED_OK;
    const int is_old = memcmp(again, before, sizeof again) == 0;
    held = held && (is_old || memcmp(again, state, sizeof again) == 0) && (saved != TUNED_OK || !is_old);
    old += is_old;
    ++cuts;
    tuned_resume(model, state, sizeof state);
    if (saved == TUNED_OK) break;
  }
  print_check("a power cut leaves the old state or the new one", held && old > 10 && cuts > old);
  save_in_slices(model, &flash, x);
  tuned_resume(model, state, sizeof state);
  print_check("the driver is called as the header says", chip.wrong == 0);

  /* Another base: the word behind the steps that stands for it is another. */
  size_t at = TUNED_STATE;
  tuned_status status = TUNED_OK;
  float y[TUNED_OUTPUTS], whole[TUNED_OUTPUTS];
  tuned_predict(model, x, whole);
  while (at-- > 0 && status != TUNED_OTHER_BASE) {
    state[at] ^= 1;
    status = tuned_resume(model, state, sizeof state);
    if (status != TUNED_OTHER_BASE) state[at] ^= 1;
  }
  print_check("a state of another base", status == TUNED_OTHER_BASE && tuned_accumulate(model, x, &label, NULL) == TUNED_OK);
  tuned_start(model, 9);
  print_check("lends its parameters", tuned_load(model, state, sizeof state) == TUNED_OK && tuned_predict(model, x, y) == TUNED_OK &&
                                          memcmp(y, whole, sizeof y) == 0);
  print_check("and no more", tuned_save(model, again, sizeof again) == TUNED_OK && memcmp(again, state, sizeof again) != 0);
  tuned_save_to_flash(model, &flash);
  tuned_start(model, 9);
  print_check("from flash, too", tuned_load_from_flash(model, &flash) == TUNED_OK && tuned_predict(model, x, y) == TUNED_OK &&
                                     memcmp(y, whole, sizeof y) == 0);
  tuned_accumulate_in_slices(model, x, &label);
  print_check("not within a pass", tuned_load_from_flash(model, &flash) == TUNED_UNDER_WAY &&
                                       tuned_resume_from_flash(model, &flash) == TUNED_UNDER_WAY && tuned_load(model, state, sizeof state) == TUNED_UNDER_WAY);
  tuned_discard(model);
  tuned_flash partial = flash;
  partial.sync = NULL;
  print_check("a driver with a hole", tuned_save_to_flash(model, &partial) == TUNED_NULL_ARGUMENT && tuned_save_to_flash(model, NULL) == TUNED_NULL_ARGUMENT);
}

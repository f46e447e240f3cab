// Errors of bytes and numbers from outside. All other misuse is a compile error.
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// The result of a call. Except for kOk, nothing has changed, unless stated otherwise. message() explains
/// each value in one sentence.
enum class [[nodiscard]] Status : std::uint8_t{
    kOk = 0,             // success
    kInvalidLength = 1,  // a length or size from outside that does not fit the type
    kIncompleteBatch =
        2,           // update() before `batch` sequences were accumulated; update_incomplete() before any
    kFullBatch = 3,  // accumulate() after `batch` sequences without an update()
    kNotInitialized = 4,       // a trainer without parameters: neither initialized, nor loaded, nor resumed
    kUnderWay = 5,             // a pass in slices is not finished: advance() it to its end, or discard() it
    kInvalidLearningRate = 6,  // negative, NaN, or so large that a step could overflow parameters
    kInvalidBeta = 7,          // a decay rate outside [0, 1), or NaN
    kInvalidEpsilon = 8,       // not positive and finite
    kInvalidWeightDecay = 9,  // negative, NaN, or learning rate · decay > 1, more than a step can take away;
                              // an option of ClosedFormHead, or of learning without labels, out of range
    kInvalidMomentum = 10,    // momentum or dampening outside [0, 1], or Nesterov without momentum
    kInvalidMaxNorm = 11,     // a gradient-norm bound that is not positive, or NaN
    kInvalidSampling = 12,  // a temperature that is negative, infinite or NaN, or a negative number of tokens
    kInvalidTarget = 13,    // a target that is not a class of the loss
    kInvalidClassWeight = 14,  // a class weight that is negative, infinite or NaN; a prior without a class,
                               // or with another sum than 1
    kNoTargets = 15,     // every target of a batch is ignored or has no weight, or a head has no examples
    kInvalidToken = 16,  // a token id outside the vocabulary
    kCacheFull = 17,     // no room for more tokens in a cache, or the end of a table of positions
    kNothingRemembered = 18,  // a decoder's first step without remember() before it
    kNotFinite = 19,        // input, output, loss or gradient is infinite or NaN, or too large to be squared
    kIllConditioned = 20,   // equations that are singular, or that rounding would solve wrongly
    kCutShort = 21,         // a file ends before its header does, or before its last tensor
    kTrailingBytes = 22,    // a file continues after its last tensor
    kHeaderTooLong = 23,    // a file's header is longer than its format allows
    kInvalidHeader = 24,    // a file's header breaks its format
    kEscapedName = 25,      // a name in a file has an escape or a control character
    kDuplicateTensor = 26,  // a file has a tensor of the model twice
    kInvalidRank = 27,      // a tensor in a file has more than 8 dimensions
    kInvalidType = 28,      // a tensor's type is unknown, or not supported here
    kInvalidSize = 29,      // a tensor's bytes do not match its shape and type, or it has none
    kOverflow = 30,         // a number in a file's header is too large
    kOverlap = 31,          // tensors of a file share bytes
    kHole = 32,             // a file has bytes between tensors
    kMisaligned = 33,       // a tensor cannot be read in place because of its alignment
    kUnknownTensor = 34,    // a file has a tensor that the model does not have
    kMissingTensor = 35,    // a file lacks a tensor of the model
    kOtherAlias = 36,       // a tensor in a file differs from the tensor whose alias it is
    kInvalidShape = 37,     // a tensor in a file has another shape than the model's
    kNothingStored = 38,    // a flash without a valid state, or a missing file
    kUnreadable = 39,       // stored data cannot be read, or reads differently each time
    kOtherState = 40,       // a state of another model, optimizer or types, or of an uninitialized trainer
    kOtherBase = 41,        // a state trained with other constants than this program's
    kOtherArithmetic = 42,  // a state of another arithmetic; only its parameters can be loaded
    kOtherPrecision = 43,   // a state trained with the other kind of products, integer or float
    kOtherStep = 44,        // a replayed step that is not the trainer's next one
    kNotErased = 45,        // worn flash: a page is not erased after an erase
    kNotProgrammed = 46,    // flash reads other bytes than were programmed
    kFlashFault = 47,       // a flash driver failed
    kJournalFull = 48,      // no room for another journal entry
    kFileFault = 49,        // a file cannot be opened or written
    kWrongArithmetic = 50,  // SelfTest: a compiler option or processor mode changes results
    kNulPadding = 51,       // a file's header ends with NUL characters instead of spaces
    kChangedDuringSave = 52,  // a record changed between two slices of its save
    kPaddingToken = 53,       // padding where a model needs a token: a token would attend to padding alone
};

namespace detail {

struct StatusMessage {
  Status status;
  const char* text;
};
inline constexpr StatusMessage kMessages[] = {
    {Status::kOk, "ok"},
    {Status::kInvalidLength, "a length or size does not fit the type"},
    {Status::kIncompleteBatch, "too few sequences for an update: accumulate() first"},
    {Status::kFullBatch, "the batch is full: update() first"},
    {Status::kNotInitialized, "no parameters: initialize(), load() or resume() first"},
    {Status::kUnderWay, "a pass in slices is unfinished: advance() it to its end, or discard() it"},
    {Status::kInvalidLearningRate, "learning rate is negative, NaN or too large"},
    {Status::kInvalidBeta, "beta must be in [0, 1)"},
    {Status::kInvalidEpsilon, "epsilon must be positive and finite"},
    {Status::kInvalidWeightDecay,
     "weight decay (at most 1 / learning rate), ridge, rehearsal or scale is out of range"},
    {Status::kInvalidMomentum,
     "momentum and dampening must be in [0, 1], Nesterov needs momentum and no dampening"},
    {Status::kInvalidMaxNorm, "the bound of the gradient norm must be positive"},
    {Status::kInvalidSampling, "temperature and top_k must be at least 0"},
    {Status::kInvalidTarget, "a target must be a class or the ignored index"},
    {Status::kInvalidClassWeight,
     "class weights must be finite and at least 0, a prior positive with a sum of 1"},
    {Status::kNoTargets, "no example with a target: skip this batch, or add() some"},
    {Status::kInvalidToken, "a token id must be in [0, vocabulary)"},
    {Status::kCacheFull, "the cache is full: reset() it, or raise its capacity"},
    {Status::kNothingRemembered, "the decoder has no memory: remember() first"},
    {Status::kNotFinite, "a number is not finite: check data and learning rate"},
    {Status::kIllConditioned, "ill-conditioned: scale features down, or raise ridge"},
    {Status::kCutShort, "the file is cut short: transfer it again"},
    {Status::kTrailingBytes, "bytes follow the last tensor"},
    {Status::kHeaderTooLong, "the header is too long"},
    {Status::kInvalidHeader, "the header is malformed"},
    {Status::kEscapedName, "a tensor's name is escaped"},
    {Status::kDuplicateTensor, "duplicate tensor"},
    {Status::kInvalidRank, "a tensor has more than 8 dimensions"},
    {Status::kInvalidType, "a tensor's type is not supported: convert it"},
    {Status::kInvalidSize, "a tensor's size does not match its shape"},
    {Status::kOverflow, "a number is too large"},
    {Status::kOverlap, "tensors overlap"},
    {Status::kHole, "unused bytes between tensors"},
    {Status::kMisaligned, "a tensor is misaligned: save the file again"},
    {Status::kUnknownTensor, "the model has no such tensor: compare names"},
    {Status::kMissingTensor, "the file lacks a tensor: compare names"},
    {Status::kOtherAlias, "one tensor has two different values: save the model again"},
    {Status::kInvalidShape, "a tensor has another shape"},
    {Status::kNothingStored, "nothing is stored: initialize() first"},
    {Status::kUnreadable, "stored data cannot be read: check flash"},
    {Status::kOtherState, "the state belongs to another model, optimizer or record: initialize()"},
    {Status::kOtherBase,
     "the state was trained with other constants: load() its parameters, or initialize()"},
    {Status::kOtherArithmetic, "the state has another arithmetic: load() its parameters"},
    {Status::kOtherPrecision, "the state was trained in another precision: load() its parameters"},
    {Status::kOtherStep, "not the next step: replay each once, in order"},
    {Status::kNotErased, "a page of flash is not erased: save again"},
    {Status::kNotProgrammed, "flash has stuck bits: save again"},
    {Status::kFlashFault, "the flash driver failed: check it"},
    {Status::kJournalFull, "the journal is full: send it, then clear()"},
    {Status::kFileFault, "the file cannot be opened or written"},
    {Status::kWrongArithmetic,
     "this build computes different results: no -ffast-math, no flush-to-zero; on a Pico, "
     "pico_set_float_implementation(app compiler)"},
    {Status::kNulPadding, "the header is padded with NUL characters: pad it with spaces"},
    {Status::kChangedDuringSave, "a record changed during its save: save between two updates"},
    {Status::kPaddingToken,
     "padding in place of a token: the ids need a token that the others can attend to"},
};
// By number: a device keeps the texts alone.
struct StatusTexts {
  static constexpr std::size_t kCount = sizeof kMessages / sizeof *kMessages;
  const char* of[kCount];
};
inline constexpr StatusTexts kTexts = [] {
  StatusTexts texts{};
  for (const auto& [status, text] : kMessages) texts.of[static_cast<std::size_t>(status)] = text;
  return texts;
}();

}  // namespace detail

/// One line for a log or a display, a literal in flash: the fact, then the remedy after a colon.
[[nodiscard]] constexpr const char* message(Status status) {
  const auto number = static_cast<std::size_t>(status);
  return number < detail::StatusTexts::kCount ? detail::kTexts.of[number] : "unknown status";
}

}  // namespace ATTUNE_NAMESPACE

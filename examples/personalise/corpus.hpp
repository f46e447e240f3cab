// All recordings of six speakers, on a PC: of the Free Spoken Digit Dataset, from files that are no part of
// the project, or of voices that are made up.
#pragma once

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <attune/attune.hpp>

#include "recording.hpp"

namespace personalise {

inline constexpr int kTestedRecordings = 5;    // of each digit and speaker, the first ones: never trained on
inline constexpr int kFirstTake = 25;          // of a new speaker; the recordings before are for testing
inline constexpr int kOthersTakesOfDigit = 2;  // of each other speaker, to be rehearsed

struct Corpus {
  struct Entry {
    Recording recording;
    int index;  // among those of a digit and speaker
  };
  std::vector<Entry> entries;

  /// As if `speaker` had never been recorded.
  [[nodiscard]] Corpus without(int speaker) const {
    Corpus rest;
    for (const Entry& entry : entries) {
      if (entry.recording.speaker != speaker) rest.entries.push_back(entry);
    }
    return rest;
  }
  /// What the base is trained with where `speaker` is new, and digits from `classes` on come later.
  [[nodiscard]] std::vector<const Recording*> for_base(int speaker, int classes = kDigits) const {
    std::vector<const Recording*> chosen;
    for (const Entry& entry : entries) {
      if (entry.recording.speaker != speaker && entry.recording.digit < classes &&
          entry.index >= kTestedRecordings)
        chosen.push_back(&entry.recording);
    }
    return chosen;
  }
  /// What a device gets where `speaker` is new, in the order of Recordings.
  [[nodiscard]] std::vector<Recording> for_device(int speaker) const {
    std::vector<Recording> chosen;
    const auto take = [&](Use use, const auto& condition) {
      const auto first = static_cast<std::ptrdiff_t>(chosen.size());
      for (const Entry& entry : entries) {
        if (!condition(entry, entry.recording.speaker == speaker)) continue;
        chosen.push_back(entry.recording);
        chosen.back().use = use;
      }
      std::stable_sort(chosen.begin() + first, chosen.end(),
                       [](const Recording& a, const Recording& b) { return a.digit < b.digit; });
    };
    const auto is_take = [](int index, int count) {
      return index >= kFirstTake && index < kFirstTake + count;
    };
    take(Use::kTakes, [&](const Entry& e, bool own) { return own && is_take(e.index, kTakesOfDigit); });
    take(Use::kOwnTest, [](const Entry& e, bool own) { return own && e.index < kFirstTake; });
    take(Use::kOthersTest, [](const Entry& e, bool own) { return !own && e.index < kTestedRecordings; });
    take(Use::kOthersTakes,
         [&](const Entry& e, bool own) { return !own && is_take(e.index, kOthersTakesOfDigit); });
    return chosen;
  }
};

namespace detail {

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A tensor's bytes; nothing where the file has none of this name and size.
inline const char* tensor(const std::string& file, std::string_view name, std::uint64_t bytes) {
  if (file.size() < 8) return nullptr;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(file[static_cast<std::size_t>(i)]);
  if (length > file.size() - 8) return nullptr;
  attune::SafetensorsHeader header({file.data() + 8, static_cast<std::size_t>(length)},
                                   file.size() - 8 - length);
  attune::SafetensorsEntry entry;
  const char* found = nullptr;
  while (header.next(entry)) {
    if (entry.name == name && entry.bytes() == bytes) found = file.data() + 8 + length + entry.begin;
  }
  return header.status() == attune::Status::kOk ? found : nullptr;
}

}  // namespace detail

/// Adds a file of `count` recordings: x [count, 32, 16] of signed bytes; y, len, speaker and index [count] of
/// bytes. Whether it is one.
inline bool read(const std::string& path, std::size_t count, Corpus& corpus) {
  const std::string file = detail::contents(path);
  constexpr std::size_t kSize = sizeof(Recording::bands);
  const char* const x = detail::tensor(file, "x", count * kSize);
  const char* const digits = detail::tensor(file, "y", count);
  const char* const lengths = detail::tensor(file, "len", count);
  const char* const speakers = detail::tensor(file, "speaker", count);
  const char* const indices = detail::tensor(file, "index", count);
  if (x == nullptr || digits == nullptr || lengths == nullptr || speakers == nullptr || indices == nullptr)
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    Corpus::Entry entry{};
    std::copy_n(x + i * kSize, kSize, entry.recording.bands);
    entry.recording.length = static_cast<unsigned char>(lengths[i]);
    entry.recording.digit = static_cast<unsigned char>(digits[i]);
    entry.recording.speaker = static_cast<unsigned char>(speakers[i]);
    entry.index = static_cast<unsigned char>(indices[i]);
    if (entry.recording.length < 1 || entry.recording.length > kTokens || entry.recording.digit >= kDigits ||
        entry.recording.speaker >= kSpeakers)
      return false;
    corpus.entries.push_back(entry);
  }
  return true;
}

/// The two files of a folder. Whether they are there, and are what they should be.
inline bool read_folder(const std::string& folder, Corpus& corpus) {
  return read(folder + "/spoken_digits_test.i8.safetensors", 300, corpus) &&
         read(folder + "/spoken_digits_train.i8.safetensors", 2700, corpus);
}

/// Voices that are made up, as many recordings as of people: a digit is three sounds with two formants each,
/// which a speaker has at other places, in another tempo and with a color of their own.
inline Corpus synthetic_voices() {
  struct Sound {
    float formants[2], loudness;
  };
  constexpr int kSounds = 3, kRecordings = 50;
  attune::Rng sounds(1);
  std::array<std::array<Sound, kSounds>, kDigits> words;
  for (auto& word : words) {
    for (Sound& sound : word) {
      sound = {{sounds.uniform(1.0f, 7.0f), sounds.uniform(6.0f, 13.0f)}, sounds.uniform(0.5f, 1.0f)};
    }
  }
  Corpus corpus;
  for (int speaker = 0; speaker < kSpeakers; ++speaker) {
    attune::Rng voice(static_cast<std::uint64_t>(100 + speaker));
    const float stretch = voice.uniform(0.8f, 1.25f), tempo = voice.uniform(0.75f, 1.2f);
    std::array<std::array<std::array<float, 2>, kSounds>, kDigits> accent;
    std::array<float, kBands> color;
    for (auto& word : accent) {
      for (auto& sound : word) sound = {voice.uniform(-1.5f, 1.5f), voice.uniform(-1.5f, 1.5f)};
    }
    for (float& band : color) band = voice.uniform(-12.0f, 12.0f);
    for (int index = 0; index < kRecordings; ++index) {
      for (int digit = 0; digit < kDigits; ++digit) {
        const auto d = static_cast<std::size_t>(digit);
        Corpus::Entry entry{};
        entry.index = index;
        entry.recording.digit = static_cast<unsigned char>(digit);
        entry.recording.speaker = static_cast<unsigned char>(speaker);
        const int length = std::clamp(static_cast<int>(20 * tempo * voice.uniform(0.8f, 1.2f)), 6, kTokens);
        entry.recording.length = static_cast<unsigned char>(length);
        for (int token = 0; token < length; ++token) {
          const auto s = static_cast<std::size_t>(token * kSounds / length);
          for (int band = 0; band < kBands; ++band) {
            float level = 0;
            for (std::size_t f = 0; f < 2; ++f) {
              const float away =
                  static_cast<float>(band) - words[d][s].formants[f] * stretch - accent[d][s][f];
              level += attune::kernels::exponential(-0.5f * away * away);
            }
            level = 70 * words[d][s].loudness * level - 25 + color[static_cast<std::size_t>(band)] +
                    12 * voice.normal();
            entry.recording.bands[token * kBands + band] =
                static_cast<signed char>(std::clamp(level, -127.0f, 127.0f));
          }
        }
        corpus.entries.push_back(entry);
      }
    }
  }
  return corpus;
}

}  // namespace personalise

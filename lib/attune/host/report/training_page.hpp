// A training run as one self-contained page of HTML: no other files, no script, light and dark, for screens
// and phones. Needs a heap and files; never included by attune.hpp.
//
//   attune::host::TrainingPage page("digits: 8×8 pixels, two encoder blocks");
//   page.fact("parameters hash", "575363d1");
//   page.curves(run);
//   if (trainer.predict(sample, y) != attune::Status::kOk) …
//   page.sample("an image it has not seen", sample);
//   page.attention(attune::host::attention_maps(trainer.tape()));
//   page.confusion(names, counts);
//   page.memory_of_device<Model>(Trainer::memory(attune::Feeding::kOneByOne));
//   if (!page.write("training.html")) …
#pragma once

#include <fstream>
#include <utility>

#include <attune/host/report/attention_maps.hpp>
#include <attune/host/report/html_chart.hpp>
#include <attune/host/report/html_maps.hpp>
#include <attune/host/report/page_style.hpp>
#include <attune/host/training_run.hpp>

namespace ATTUNE_NAMESPACE::host {

/// Sections appear in the order of the calls. All text may be any UTF-8.
class TrainingPage {
 public:
  /// An empty page with this title.
  explicit TrainingPage(std::string title) : title_(std::move(title)) {}

  /// A named number or word, at the top.
  void fact(const std::string& name, const std::string& value) {
    html::append(facts_, "<div><dt>", html::escaped(name), "</dt><dd>", html::escaped(value),
                 "</dd></div>\n");
  }

  /// The loss over the steps, averaged in stretches, and the accuracy of every validation.
  template <class Parameters>
  void curves(const TrainingRun<Parameters>& run) {
    std::vector<html::Point> losses, accuracies;
    for (const float loss : run.losses)
      losses.push_back({static_cast<double>(losses.size() + 1), static_cast<double>(loss)});
    html::ChartOptions accuracy{.name = "accuracy", .percent = true};
    std::string best;
    for (const Validation& validation : run.validations) {
      if (accuracy.marked < 0 && validation.step == run.best_step) {
        accuracy.marked = static_cast<int>(accuracies.size());
        best = html::joined("best: ", html::percent(validation.accuracy), " at step ", validation.step);
      }
      accuracies.push_back({static_cast<double>(validation.step), validation.accuracy});
    }
    std::string figures =
        figure("Loss", html::chart(html::thinned(losses, kPoints), {.name = "loss", .may_log = true}),
               losses.size() > kPoints ? html::joined("the mean of each of ", kPoints, " stretches") : "");
    if (!accuracies.empty()) figures += figure("Accuracy", html::chart(accuracies, accuracy), best);
    section("Training", "<div class=\"figures\">\n" + figures + "</div>\n");
  }

  /// A matrix as a picture: 0 is white and `full` black, or the reverse on a dark page.
  template <class Matrix>
  void sample(const std::string& name, const Matrix& values, double full = 1) {
    std::vector<double> entries;
    const auto matrix = view(values);
    for (int i = 0; i < matrix.rows; ++i) {
      for (int j = 0; j < matrix.cols; ++j) entries.push_back(static_cast<double>(matrix(i, j)));
    }
    const html::MapOptions options{.name = name, .row_name = "row", .col_name = "column", .full = full};
    section(name, "<div class=\"maps sample\">\n" +
                      figure("", html::map(matrix.rows, matrix.cols, entries, options)) + "</div>\n");
  }

  /// Weights of heads from attention_maps(): one row per query, one column per key, darker for larger
  /// weights.
  void attention(const std::vector<AttentionMap>& maps) {
    std::string content =
        "<p class=\"soft\">A row is a query, a column a key; full color is a weight of 1.</p>\n";
    for (std::size_t i = 0; i < maps.size();) {
      const std::string& layer = maps[i].layer;
      if (!layer.empty()) html::append(content, "<h3>", html::escaped(layer), "</h3>\n");
      content += "<div class=\"maps\">\n";
      for (; i < maps.size() && maps[i].layer == layer; ++i) {
        const std::string head = html::joined("head ", maps[i].head);
        content += figure(head, html::map(maps[i].queries, maps[i].keys, maps[i].weights,
                                          {.name = html::joined("attention of ", head)}));
      }
      content += "</div>\n";
    }
    section("Attention", content);
  }

  /// counts[classes, classes]: element i · classes + j counts examples of class i that were predicted as
  /// class j.
  void confusion(const std::vector<std::string>& names, const std::vector<std::int64_t>& counts) {
    if (counts.size() != names.size() * names.size()) return;
    section("Confusion",
            "<p class=\"soft\">Rows are true classes, columns predictions.</p>\n<div class=\"wide\">\n" +
                html::confusion_table(names, counts) + "</div>\n");
  }

  /// Memories of a device, on one scale.
  void memory(const std::vector<html::Memory>& memories) {
    section("Memory on a device",
            "<p class=\"soft\">Known when it was compiled; without code and stack.</p>\n" +
                html::memory_map(memories));
  }
  /// RAM of training, and RAM and flash of inference with constant parameters.
  template <class Model>
  void memory_of_device(const MemoryReport& training) {
    MemoryReport inference = inference_memory<Model>();
    const MemoryReport flash{.parameters = std::exchange(inference.parameters, 0)};
    memory({{"Training: RAM", training}, {"Inference: RAM", inference}, {"Inference: flash", flash}});
  }

  /// The whole page.
  [[nodiscard]] std::string text() const {
    std::string page =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'\"/>\n";
    html::append(page, "<title>", html::escaped(title_), "</title>\n<style>\n", kPageStyle,
                 "</style>\n</head>\n");
    html::append(page, "<body>\n<main>\n<h1>", html::escaped(title_), "</h1>\n");
    if (!facts_.empty()) html::append(page, "<dl>\n", facts_, "</dl>\n");
    return page + sections_ + "</main>\n</body>\n</html>\n";
  }

  /// Writes the page to a file. Returns whether all of it was written.
  [[nodiscard]] bool write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text();
    file.close();
    return file.good();
  }

 private:
  static constexpr std::size_t kPoints = 150;

  void section(const std::string& name, const std::string& content) {
    html::append(sections_, "<section>\n<h2>", html::escaped(name), "</h2>\n", content, "</section>\n");
  }
  static std::string figure(const std::string& name, const std::string& content,
                            const std::string& note = "") {
    std::string text = "<figure>\n";
    if (!name.empty()) {
      html::append(text, "<figcaption>", html::escaped(name));
      if (!note.empty()) html::append(text, " <span class=\"soft\">", html::escaped(note), "</span>");
      text += "</figcaption>\n";
    }
    return text + content + "</figure>\n";
  }

  std::string title_;
  std::string facts_;
  std::string sections_;
};

}  // namespace ATTUNE_NAMESPACE::host

// A data partition of ESP-IDF as attune::FlashStore wants it. With a line in partitions.csv,
//   attune, data, undefined, , 32K
//
//   EspFlash<8> flash("attune");  // 8 sectors of 4 KB
//
// Not for an encrypted partition: what is erased does not read as FF there.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esp_partition.h>

#include <attune/core/status.hpp>

template <std::uint32_t sectors>
class EspFlash {
 public:
  static constexpr std::uint32_t kPageSize = 4096, kPages = sectors, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;

  /// A partition that is not there, too small or encrypted answers kFlashFault from then on.
  explicit EspFlash(const char* label)
      : partition_(esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, label)) {
    if (partition_ != nullptr && (partition_->encrypted || partition_->size < kPageSize * kPages))
      partition_ = nullptr;
  }

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    return partition_ == nullptr ? attune::Status::kFlashFault
                                 : status_of(esp_partition_read(partition_, at, to, bytes));
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    return partition_ == nullptr ? attune::Status::kFlashFault
                                 : status_of(esp_partition_write(partition_, at, from, bytes));
  }
  attune::Status erase(std::uint32_t at) {
    return partition_ == nullptr ? attune::Status::kFlashFault
                                 : status_of(esp_partition_erase_range(partition_, at, kPageSize));
  }
  attune::Status sync() { return attune::Status::kOk; }

 private:
  static attune::Status status_of(esp_err_t error) {
    return error == ESP_OK ? attune::Status::kOk : attune::Status::kFlashFault;
  }
  const esp_partition_t* partition_;
};

// A partition of Zephyr's flash map as attune::FlashStore wants it. With a node `attune_partition` in the
// devicetree and CONFIG_FLASH, CONFIG_FLASH_MAP and CONFIG_FLASH_PAGE_LAYOUT:
//
//   #define FLASH_NODE DT_MTD_FROM_FIXED_PARTITION(DT_NODELABEL(attune_partition))
//   ZephyrFlash<{.page_size = DT_PROP(FLASH_NODE, erase_block_size), .pages = 4,
//                .unit = DT_PROP(FLASH_NODE, write_block_size)}> flash(FIXED_PARTITION_ID(attune_partition));
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <zephyr/storage/flash_map.h>

#include <attune/core/status.hpp>

struct ZephyrFlashShape {
  std::uint32_t page_size, pages, unit;
  unsigned char erased = 0xFF;
};

template <ZephyrFlashShape shape>
class ZephyrFlash {
 public:
  static constexpr std::uint32_t kPageSize = shape.page_size, kPages = shape.pages, kProgramUnit = shape.unit;
  static constexpr unsigned char kErased = shape.erased;

  /// A partition that is not there, too small or of another shape answers kFlashFault from then on.
  explicit ZephyrFlash(std::uint8_t id) {
    if (flash_area_open(id, &area_) != 0) area_ = nullptr;
    const bool fits = area_ != nullptr && area_->fa_size >= kPageSize * kPages &&
                      kProgramUnit % flash_area_align(area_) == 0 && flash_area_erased_val(area_) == kErased;
    if (!fits && area_ != nullptr) flash_area_close(area_);
    if (!fits) area_ = nullptr;
  }
  ZephyrFlash(const ZephyrFlash&) = delete;
  ZephyrFlash& operator=(const ZephyrFlash&) = delete;
  ~ZephyrFlash() {
    if (area_ != nullptr) flash_area_close(area_);
  }

  /// Drivers answer -EIO for rows that error correction gives up on; all others are faults.
  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    if (area_ == nullptr) return attune::Status::kFlashFault;
    const int error = flash_area_read(area_, static_cast<off_t>(at), to, bytes);
    return error == -EIO ? attune::Status::kUnreadable : status_of(error);
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    if (area_ == nullptr) return attune::Status::kFlashFault;
    return status_of(flash_area_write(area_, static_cast<off_t>(at), from, bytes));
  }
  attune::Status erase(std::uint32_t at) {
    if (area_ == nullptr) return attune::Status::kFlashFault;
    return status_of(flash_area_erase(area_, static_cast<off_t>(at), kPageSize));
  }
  attune::Status sync() { return attune::Status::kOk; }

 private:
  static attune::Status status_of(int error) {
    return error == 0 ? attune::Status::kOk : attune::Status::kFlashFault;
  }
  const struct flash_area* area_ = nullptr;
};

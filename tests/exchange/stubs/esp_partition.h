// Of ESP-IDF's partitions, what the adapter calls: one with the label "attune".
#pragma once

#include "memory.hpp"

typedef int esp_err_t;
inline constexpr esp_err_t ESP_OK = 0, ESP_ERR_INVALID_SIZE = 0x104;
typedef enum { ESP_PARTITION_TYPE_APP = 0x00, ESP_PARTITION_TYPE_DATA = 0x01 } esp_partition_type_t;
typedef enum { ESP_PARTITION_SUBTYPE_ANY = 0xff } esp_partition_subtype_t;
typedef struct {
  std::uint32_t address, size, erase_size;
  char label[17];
  bool encrypted;
} esp_partition_t;
inline esp_partition_t stub_partition{0x110000, stub::kSize, 4096, "attune", false};

inline const esp_partition_t* esp_partition_find_first(esp_partition_type_t type, esp_partition_subtype_t,
                                                       const char* label) {
  const bool found = type == ESP_PARTITION_TYPE_DATA && std::strcmp(label, stub_partition.label) == 0;
  return found ? &stub_partition : nullptr;
}
inline esp_err_t esp_partition_read(const esp_partition_t* partition, std::size_t at, void* to,
                                    std::size_t bytes) {
  if (at + bytes > partition->size) return ESP_ERR_INVALID_SIZE;
  std::memcpy(to, stub::memory + at, bytes);
  return ESP_OK;
}
inline esp_err_t esp_partition_write(const esp_partition_t*, std::size_t at, const void* from,
                                     std::size_t bytes) {
  return stub::program(at, from, bytes, 1) ? ESP_OK : ESP_ERR_INVALID_SIZE;
}
inline esp_err_t esp_partition_erase_range(const esp_partition_t*, std::size_t at, std::size_t bytes) {
  return stub::erase(at, bytes, 4096) ? ESP_OK : ESP_ERR_INVALID_SIZE;
}

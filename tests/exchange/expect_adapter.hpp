// What holds of a FlashStore over any of examples/flash_adapters.
#pragma once

#include <attune/persistence/flash_store.hpp>

#include "check.hpp"
#include "exchange/stubs/memory.hpp"

struct AdapterRecord {
  char bytes[45];
};

template <class Flash>
void expect_adapter_keeps_states(Flash& flash) {
  using attune::Status;
  stub::begin();
  attune::FlashStore<Flash, AdapterRecord> store(flash);
  AdapterRecord loaded{};
  EXPECT_EQ(store.load(loaded), Status::kNothingStored);
  for (char seed = 0; seed < 5; ++seed) {
    AdapterRecord saved;
    for (std::size_t i = 0; i < sizeof saved; ++i)
      saved.bytes[i] = static_cast<char>(seed * 11 + static_cast<char>(i));
    EXPECT_EQ(store.save(saved), Status::kOk);
    EXPECT_EQ(store.load(loaded), Status::kOk);
    EXPECT_TRUE(check::same_bits(saved, loaded));
  }
  EXPECT_TRUE(stub::locked);
  EXPECT_GT(stub::calls, 10u);
}

/// A row that the flash gives up on is no driver's fault, and no state.
template <class Flash>
void expect_adapter_finds_torn_rows(Flash& flash) {
  AdapterRecord record{};
  attune::FlashStore<Flash, AdapterRecord> store(flash);
  stub::torn = true;
  EXPECT_EQ(flash.read(0, &record, sizeof record), attune::Status::kUnreadable);
  EXPECT_EQ(store.load(record), attune::Status::kNothingStored);
  stub::torn = false;
  EXPECT_EQ(store.load(record), attune::Status::kOk);
}

// expect: attune::FlashStore: a Trainer is not a record; store trainer.state(), of type Trainer::State
#include <attune/attune.hpp>

#include "flash.hpp"

using Flash = FlashOf<64>;
using Trainer = attune::Trainer<attune::Linear<attune::LinearShape{1, 2, 3}>>;
Flash flash;
attune::FlashStore<Flash, Trainer> store(flash);

// expect: attune::FlashStore: a record is a pointer or a view, so its address would be saved; store the data
#include <attune/attune.hpp>

#include "flash.hpp"

using Flash = FlashOf<64>;
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
Flash flash;
attune::FlashStore<Flash, Model::ParametersOf<attune::TransposedReference, attune::Reference>> store(flash);

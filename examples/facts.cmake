# Facts about the examples, for CMakeLists.txt beside this file. As a script it prints them for examples/run, a line
# `NAME KEY VALUE...` for each:
#   cmake -P examples/facts.cmake
# Every folder NAME/ with a NAME.cpp is an example.
#   NAME_shapes       <seq_len>x<d_model>x<num_heads>, the default first: a program for each
#   NAME_SHAPE_ram    KiB of RAM of a shape, its stack included; 8 without a line. Boards with less leave it out
#   NAME_SHAPE_stack  KiB of stack, where a board's usual one is more than there is room for
#   NAME_targets      its targets, if not all
#   NAME_icount       in an example that works by the clock, an instruction takes 2^N ns of an emulated board's time
#   NAME_methods      it does its work in several ways, the default first: a program for each
#   NAME_precisions   arithmetics that it trains in, the default first: a program for each
#   NAME_cores        numbers of cores that it trains on, the default first: a program for each, on boards that have as many
#   NAME_parts        static objects that it has parts of its trainer in, in a program for boards with another memory: --memory
#   NAME_journaled    those of the methods that train with a journal: NAME/replay.hpp has NAME::Replayed, for a PC
#   NAME_files        files in flash that its base.cpp makes beside the model
#   NAME_options      options of examples/run that it takes; NAME_base_options: options of its base.cpp
#   NAME_about        one line about it, for examples/run without arguments; NAME_takes: its time on its default targets,
#                     once they are built
set(argmax_copy_shapes 8x4x1 16x8x2 16x32x4)
set(argmax_copy_about "learns to copy the token whose first feature is largest")
set(argmax_copy_takes "15 seconds")
set(argmax_copy_16x8x2_ram 16)
set(argmax_copy_16x32x4_ram 96)
set(argmax_copy_cores 1 2)
set(argmax_copy_options --steps)

set(digits_shapes 8x16x2 8x32x4)
set(digits_about "learns handwritten digits")
set(digits_takes "a minute")
set(digits_8x16x2_ram 64)
set(digits_8x32x4_ram 336)
set(digits_precisions float int8 bf16 int8_bf16)
set(digits_parts trainer gradients weights buffers)
set(digits_options --steps --images --seed --validation)

set(vowels_shapes 29x16x2)
set(vowels_about "tells nine speakers apart, from a file of yours (--data)")
set(vowels_takes "a second")
set(vowels_targets host)
set(vowels_options --steps --seed --data)

set(monitor_shapes 32x16x2)
set(monitor_about "watches a machine's vibrations and learns between ticks of 1 kHz")
set(monitor_takes "a minute or two")
set(monitor_32x16x2_ram 96)
set(monitor_targets host mps2_an386)
set(monitor_icount 3)
set(monitor_cores 1 2)
set(monitor_options --steps --seed --resets --unseen --learn)

set(personalise_shapes 32x32x4)
set(personalise_about "adapts a model of spoken digits to a new voice")
set(personalise_takes "a few minutes")
set(personalise_32x32x4_ram 512)
set(personalise_targets host mps2_an386)
set(personalise_methods lora baseline nearest_mean closed_form closed_form_unlabeled forward_only head cached biases_and_norms biases_and_norms_unlabeled lora_unlabeled lora_int8_tape lora_low_precision lora_sgd_bf16 lora_replayed lora_robust_loss lora_filtered_labels guarded lora_all rehearsed full full_low_precision)
set(personalise_precisions float int8)
set(personalise_files recordings factory probe)
set(personalise_journaled lora head biases_and_norms lora_all rehearsed full)
set(personalise_options --steps --seed --resets --data --out --speaker --labels --learning-rate-scale --classes --journal --replay)
set(personalise_base_options --seed --data --out --speaker --classes)

set(stream_shapes 128x64x4)
set(stream_about "learns a text on this machine, then writes token by token")
set(stream_takes "a few minutes")
set(stream_128x64x4_ram 128)
set(stream_128x64x4_stack 4)
set(stream_targets host mps2_an386 netduinoplus2)
set(stream_files vocabulary)
set(stream_options --steps --seed --data --out --prompt --tokens --temperature --top-k)
set(stream_base_options --steps --data --out)

set(spotter_shapes 64x16x2)
set(spotter_about "listens for keywords in a signal that does not end")
set(spotter_takes "a few minutes")
set(spotter_64x16x2_ram 128)
set(spotter_targets host mps2_an386)
set(spotter_options --steps --seed --tokens --out)
set(spotter_base_options --steps --out)

set(fleet_shapes 32x32x4)
set(fleet_about "simulates six devices that learn one model")
set(fleet_takes "a minute")
set(fleet_targets host)
set(fleet_options --seed --data --rounds --out)

# An example with a `run` of its own.
set(exported_about "takes a ViT from PyTorch to a board, adapts it there, and brings it back")
set(exported_takes "two minutes")

if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB sources RELATIVE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/*/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH name)
    if(source STREQUAL "${name}/${name}.cpp")
      foreach(key IN ITEMS shapes about takes targets icount methods cores parts journaled precisions files options base_options)
        list(JOIN ${name}_${key} " " values)
        message("${name} ${key} ${values}")
      endforeach()
    endif()
  endforeach()
  message("exported about ${exported_about}\nexported takes ${exported_takes}")
endif()

# ESP-IDF reads this for every project: attune_add_model(${COMPONENT_LIB} NAME … FILE …), attune_add_model_library(name …), and
# attune_stack_bound(${COMPONENT_LIB} FUNCTION …), which makes the header alone: its check reads Arm's instructions.
include(${CMAKE_CURRENT_LIST_DIR}/cmake/attune-model.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/cmake/attune-model-library.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/cmake/attune-stack.cmake)

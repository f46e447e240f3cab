# ESP-IDF reads this for every project: attune_add_model(${COMPONENT_LIB} NAME … FILE …).
include(${CMAKE_CURRENT_LIST_DIR}/cmake/attune-model.cmake)

#include "port.hpp"

const char* port::name() { return ATTUNE_PORT_NAME; }

# Warnings and sanitizers, as one interface target that all our targets link.
add_library(thimble_options INTERFACE)
target_compile_options(thimble_options INTERFACE -Wall -Wextra -Wshadow -Wconversion
  -Wno-sign-conversion $<$<BOOL:${THIMBLE_WERROR}>:-Werror>)
if(THIMBLE_SANITIZE)
  target_compile_options(thimble_options INTERFACE -fsanitize=${THIMBLE_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(thimble_options INTERFACE -fsanitize=${THIMBLE_SANITIZE})
endif()
# The garbage collector of g++ takes about a twelfth of the time of large sources; they then need 0.6 GB.
target_compile_options(thimble_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)

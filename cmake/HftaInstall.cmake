# The install tree: what it takes to tune, less LibTorch, which stays where its Python package put it.
#
#   bin/hfta-tune   lib/libhfta_torch.so   share/hfta-tune/{data,configs}   share/doc/hfta-tune
#
# The module carries the path of the LibTorch it was built with; HFTA_TORCH_DIR in the environment names another.
include(GNUInstallDirs)
if(TARGET hfta-tune)
  install(TARGETS hfta-tune RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET hfta_torch_module)
  # Not CMAKE_INSTALL_LIBDIR, which may be lib/x86_64-linux-gnu: hfta-tune looks in ../lib.
  install(TARGETS hfta_torch_module LIBRARY DESTINATION lib)
endif()
install(DIRECTORY data/ DESTINATION share/hfta-tune/data)
install(DIRECTORY configs/ DESTINATION share/hfta-tune/configs FILES_MATCHING PATTERN "*.yaml" PATTERN "README.md")
install(FILES LICENSE THIRD_PARTY.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

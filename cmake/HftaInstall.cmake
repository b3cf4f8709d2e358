# The install tree.
include(GNUInstallDirs)

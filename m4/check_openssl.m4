# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_OPENSSL: OpenSSL 3, for the module that encrypts. Without it the module is not built, and SLUICE_TLS can
# only be off. Sets OPENSSL_CFLAGS, OPENSSL_LIBS.
AC_DEFUN([SLUICE_CHECK_OPENSSL], [
  AC_ARG_WITH([openssl],
    [AS_HELP_STRING([--with-openssl=FOLDER], [where OpenSSL is installed; no: build without it])],
    [], [with_openssl=yes])
  OPENSSL_CFLAGS=
  OPENSSL_LIBS="-lssl -lcrypto"
  AS_CASE([$with_openssl], [yes|no], [],
    [OPENSSL_CFLAGS="-isystem $with_openssl/include"
     OPENSSL_LIBS="-L$with_openssl/lib -Wl,-rpath,$with_openssl/lib -lssl -lcrypto"])
  sluice_openssl=no
  AS_VAR_IF([with_openssl], [no], [], [
    sluice_saved_CPPFLAGS=$CPPFLAGS
    sluice_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $OPENSSL_CFLAGS"
    LIBS="$OPENSSL_LIBS $LIBS"
    AC_MSG_CHECKING([for OpenSSL 3])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <openssl/evp.h>
                                      #include <openssl/ssl.h>]], [[
      SSL_CTX* context = SSL_CTX_new_ex(NULL, NULL, TLS_client_method());
      return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, "", 0, NULL, 0, NULL, 0, NULL) || context;]])],
      [sluice_openssl=yes])
    AC_MSG_RESULT([$sluice_openssl])
    CPPFLAGS=$sluice_saved_CPPFLAGS
    LIBS=$sluice_saved_LIBS
    AS_CASE([$with_openssl/$sluice_openssl], [yes/no], [],
      [*/no], [AC_MSG_ERROR([there is no OpenSSL 3 in $with_openssl])])
  ])
  AC_SUBST([OPENSSL_CFLAGS])
  AC_SUBST([OPENSSL_LIBS])
  AC_SUBST([have_openssl], [$sluice_openssl])
  AM_CONDITIONAL([HAVE_OPENSSL], [test "$sluice_openssl" = yes])
])

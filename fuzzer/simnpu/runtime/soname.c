/* A library that exists so that its name resolves; what it should hold is in the stand-in's libascendcl.so. */
__attribute__((visibility("default"))) const char simnpu_standin[] = "simnpu";

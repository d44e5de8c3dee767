# Writes, from the list of a real driver's exports and proc_table.txt, what the two fake drivers need in <folder>:
# exports.map (what is exported), stubs.cpp (a weak body for every name, which a real one replaces at link time) and
# proc_rows.cpp. <version> is what cuDriverGetVersion says. Names that match `without` are left out of the map and of the rows.
function(fake_cuda_generate folder version exports_file proc_file without)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exports_file} ${proc_file})
  file(STRINGS ${exports_file} export_lines REGEX "^T ")
  set(map "{\n  global:\n")
  set(stubs "// Generated.\n#include \"tests/fake_cuda/proc_rows.h\"\n\nextern \"C\" {\n")
  set(declarations "")
  foreach(line IN LISTS export_lines)
    string(SUBSTRING ${line} 2 -1 name)
    string(APPEND stubs "__attribute__((weak, visibility(\"default\"))) int ${name}() { return fake::not_imitated(\"${name}\"); }\n")
    if(NOT without OR NOT name MATCHES "${without}")
      string(APPEND map "    ${name};\n")
      string(APPEND declarations "int ${name}();\n")
    endif()
  endforeach()
  string(APPEND stubs "}\n")
  string(APPEND map "  local: *;\n};\n")

  set(rows "")
  file(STRINGS ${proc_file} proc_lines REGEX "^cu")
  foreach(line IN LISTS proc_lines)
    string(REPLACE " " ";" fields ${line})
    list(GET fields 0 base)
    list(GET fields 1 since)
    list(GET fields 2 flavour)
    list(GET fields 3 spelling)
    if(without AND spelling MATCHES "${without}")
      continue()
    endif()
    set(per_thread true)
    if(flavour STREQUAL "-")
      set(per_thread false)
    endif()
    string(APPEND rows "    {\"${base}\", ${since}, ${per_thread}, \"${spelling}\", reinterpret_cast<void*>(&${spelling})},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/exports.map CONTENT "${map}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/stubs.cpp CONTENT "${stubs}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/proc_rows.cpp @ONLY CONTENT
"// Generated.
#include \"tests/fake_cuda/proc_rows.h\"

extern \"C\" {
${declarations}}

const fake::ProcRow fake::kProcRows[] = {
${rows}    {nullptr, 0, false, nullptr, nullptr}};
const int fake::kReportedVersion = ${version};
")
endfunction()

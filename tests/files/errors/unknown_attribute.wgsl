@workgroupsize(8) @compute fn f() {}

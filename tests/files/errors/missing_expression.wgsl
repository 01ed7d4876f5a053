const a = 1 + ;

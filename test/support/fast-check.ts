import fc from 'fast-check';

// Without this, a list that a test bounds by `maxLength` alone has ten items at most.
fc.configureGlobal({ ...fc.readConfigureGlobal(), defaultSizeToMaxWhenMaxSpecified: true });

/** Loaded before a program: the machine is called `HOSTNAME` to it, as a container's is. */
import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';

const { HOSTNAME: name = '' } = process.env;
os.hostname = () => name;
syncBuiltinESMExports();

import { render } from 'preact';
import { Page } from './page.tsx';
import { applyTheme, storedTheme } from './state/preferences.ts';

applyTheme(storedTheme());
const root = document.getElementById('page');
if (root !== null) render(<Page />, root);

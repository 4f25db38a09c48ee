/** What a person has chosen for this page, kept by the browser. */

const themeKey = 'servicenet.theme';
const keysKey = 'servicenet.keys';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

export function storedTheme(): Theme {
  return themes.find((theme) => theme === localStorage.getItem(themeKey)) ?? 'system';
}

export function applyTheme(theme: Theme): void {
  localStorage.setItem(themeKey, theme);
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** Whether single keys do something. */
export function keysAreOn(): boolean {
  return localStorage.getItem(keysKey) !== 'off';
}

export function switchKeys(isOn: boolean): void {
  localStorage.setItem(keysKey, isOn ? 'on' : 'off');
}

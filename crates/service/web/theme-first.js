// The theme that was chosen, before anything is drawn: a script that is no module runs while the page is read.
try {
  const theme = JSON.parse(localStorage.getItem("adjutant.theme"));
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Nothing may be stored here: the theme is the system's.
}
